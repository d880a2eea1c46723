// Small order services, each broken in a classic way.
//
//   node service.js KIND PORT FILE
//
// POST /orders {"id": …, "cents": …} makes an order, which is a line in the file.
'use strict';

const crypto = require('crypto');
const fs = require('fs');
const http = require('http');

const [kind, port, file] = process.argv.slice(2);

// What an order takes besides the file: some milliseconds.
const work = (then) => crypto.pbkdf2('order', 'salt', 40000, 32, 'sha256', then);

const write = (order) => fs.appendFileSync(file, `${order.id} ${order.cents}\n`);
fs.appendFileSync(file, '');
const written = (order) =>
  fs.readFileSync(file, 'utf8').split('\n').some((line) => line.startsWith(`${order.id} `));

const kinds = {
  // Nothing recognises a repeat.
  no_guard(order, answer) {
    work(() => {
      write(order);
      answer(201, { ordered: order.id });
    });
  },

  // What was done is remembered in the process, which dies.
  memory: (() => {
    const done = new Map();
    return (order, answer) => {
      const known = done.get(order.id);
      if (known) return known.then(() => answer(201, { ordered: order.id }));
      done.set(order.id, new Promise((resolve) => work(() => {
        write(order);
        resolve();
        answer(201, { ordered: order.id });
      })));
    };
  })(),

  // The effect is guarded, and whoever asks again is told something else.
  answer_not_stored: (() => {
    const underWay = new Set();
    return (order, answer) => {
      if (underWay.has(order.id)) return answer(409, { error: 'under way' });
      if (written(order)) return answer(200, { duplicate: true });
      underWay.add(order.id);
      work(() => {
        if (!written(order)) write(order);
        underWay.delete(order.id);
        answer(201, { ordered: order.id });
      });
    };
  })(),
};

http.createServer((request, response) => {
  let body = '';
  request.on('data', (part) => { body += part; });
  request.on('end', () => {
    kinds[kind](JSON.parse(body), (status, answer) => {
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(answer));
    });
  });
}).listen(Number(port), '127.0.0.1');

// The service behind the gateway in the tests: it knows nothing of idempotency, unless /remembering is asked.
//
//   NODE_PATH=/usr/share/nodejs node service.js        prints its port; ends with its standard input
//
//   POST /payments      counts, and answers 201 with Location, cookies, a header of its own and one of the connection
//   POST /remembering   the same, once for each Idempotency-Key
//   POST /zipped        counts, and answers with Content-Encoding
//   POST /status/NNN    counts, and answers with that status
//   POST /busy/NNN?retry_after=S   does nothing and answers with that status, until it is told to be idle
//   GET /seen           the headers of the request itself
//   GET /large?mebibytes=50, PUT /large   streams; PUT answers with the size and digest of what came
//
//   /control/…          for the test: executions?at_least=N, asked, fault/crash|hold|idle|none, release
"use strict";

const crypto = require("crypto");
const express = require("express");
const zlib = require("zlib");

const app = express();
app.disable("x-powered-by");

const executions = []; // in order: { path, key, headers }
const asked = []; // every POST, of which some may have been answered from memory
const remembered = new Map();
let fault = "none"; // of the next execution
let held = [];
let idle = false;
let watchers = [];

function changed() {
  watchers = watchers.filter(({ count, answer }) => executions.length < count || answer());
}

/// Counts, then does what the fault says: answers, breaks the connection, or waits.
function execute(request, respond) {
  executions.push({ path: request.originalUrl, key: request.get("Idempotency-Key"), headers: request.rawHeaders });
  const what = fault;
  fault = "none";
  if (what === "crash") request.socket.destroy();
  if (what === "hold") held.push(respond);
  changed();
  if (what === "none") respond();
}

const whole = express.raw({ type: () => true, limit: "64mb" });

function pay(request, response) {
  execute(request, () => {
    const id = executions.length;
    response.status(201);
    response.append("Set-Cookie", "session=s3ss10n; Expires=Mon, 21 Oct 2030 07:28:00 GMT; Path=/");
    response.append("Set-Cookie", "theme=dark");
    response.set({ Location: `/payments/${id}`, "X-Payment": `p-${id}`, "X-Of-The-Connection": "hop" });
    response.set("Connection", "X-Of-The-Connection");
    response.type("application/json").send(`{ "id": ${id},\n  "paid": ${request.body.length} }\n`);
  });
}

app.use((request, response, next) => {
  if (request.method === "POST" && !request.path.startsWith("/control/"))
    asked.push({ key: request.get("Idempotency-Key") });
  next();
});

app.post("/payments", whole, pay);

app.post("/remembering", whole, (request, response) => {
  const key = request.get("Idempotency-Key");
  const answer = (id) => response.status(201).set("Location", `/payments/${id}`).send(`payment ${id}`);
  if (remembered.has(key)) return answer(remembered.get(key));
  remembered.set(key, executions.length + 1);
  execute(request, () => answer(remembered.get(key)));
});

app.post("/zipped", whole, (request, response) => {
  execute(request, () => {
    response.set("Content-Encoding", "gzip").type("text/plain").send(zlib.gzipSync("what was zipped"));
  });
});

app.post("/status/:status", whole, (request, response) => {
  execute(request, () => response.status(Number(request.params.status)).send(`number ${executions.length}`));
});

app.post("/busy/:status", whole, (request, response) => {
  if (idle) return pay(request, response);
  const after = request.query.retry_after;
  if (after) response.set("Retry-After", after);
  response.status(Number(request.params.status)).send("busy");
});

app.get("/seen", (request, response) => response.json(request.headers));

app.get("/large", async (request, response) => {
  const chunk = Buffer.alloc(1 << 20, "x");
  for (let i = 0; i < Number(request.query.mebibytes); ++i)
    if (!response.write(chunk)) await new Promise((drained) => response.once("drain", drained));
  response.end();
});

app.put("/large", (request, response) => {
  const digest = crypto.createHash("sha256");
  let size = 0;
  request.on("data", (chunk) => {
    size += chunk.length;
    digest.update(chunk);
  });
  request.on("end", () => response.json({ size, digest: digest.digest("hex") }));
});

app.get("/control/executions", (request, response) => {
  const count = Number(request.query.at_least);
  watchers.push({ count, answer: () => void response.json(executions) });
  changed();
});

app.get("/control/asked", (request, response) => response.json(asked));

app.post("/control/fault/:what", (request, response) => {
  if (request.params.what === "idle") idle = true;
  else fault = request.params.what;
  response.json({});
});

app.post("/control/release", (request, response) => {
  const all = held;
  held = [];
  for (const respond of all) respond();
  response.json({ released: all.length });
});

const server = app.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit()).resume();

#!/usr/bin/env python3
"""Passing an unguarded request through, beside nginx as a proxy: one process each, kept connections, a small body.

    bench/gateway.py PASS_THROUGH SEMEL [--quick]

Both stand before the same service (a second nginx that answers by itself) and are asked in turn, A B A B, so that
what else the machine does meets both. wrk asks. CPU is what the proxy's process used, by request.

Then a guarded request beside the commits that it cannot do without: see bench/guarded.py.
"""

import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

import guarded

CONNECTIONS = (1, 16, 64)

COMMON = """
worker_processes 1;
daemon off;
pid {folder}/{name}.pid;
error_log {folder}/{name}.log;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  keepalive_requests 1000000000;
  {content}
}}
"""

SERVICE = 'server {{ listen 127.0.0.1:{port}; location / {{ return 200 "{body}"; }} }}'

PROXY = """
  upstream service {{ server 127.0.0.1:{service}; keepalive 128; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://service;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Host $host;
      proxy_set_header Via "1.1 nginx";
    }}
  }}
"""

UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def free_port():
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Nginx:
    def __init__(self, folder, name, content):
        config = pathlib.Path(folder) / f"{name}.conf"
        config.write_text(COMMON.format(folder=folder, name=name, content=content))
        self.process = subprocess.Popen(["nginx", "-c", str(config), "-p", str(folder)], stderr=subprocess.DEVNULL)

    def worker(self):
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return int(children[0])

    def stop(self):
        self.process.terminate()
        self.process.wait()


def wait_for(url):
    for _ in range(200):
        try:
            return urllib.request.urlopen(url, timeout=5).read()
        except OSError:
            time.sleep(0.02)
    sys.exit(f"{url} does not answer")


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(port, pid, connections, seconds):
    """Requests a second, the median latency in seconds, and CPU seconds a request."""
    before = cpu_seconds(pid)
    said = subprocess.run(
        ["wrk", "--threads", "1", "--connections", str(connections), "--duration", f"{seconds}s", "--latency",
         f"http://127.0.0.1:{port}/"], check=True, capture_output=True, text=True).stdout
    used = cpu_seconds(pid) - before
    if "Non-2xx" in said or "Socket errors" in said:
        sys.exit(said)
    requests = int(re.search(r"(\d+) requests in", said)[1])
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", said)[1])
    number, unit = re.search(r"50%\s+([\d.]+)(us|ms|s)", said).groups()
    return rate, float(number) * UNITS[unit], used / requests


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pass_through", help="the program of that name, built")
    parser.add_argument("semel", help="the program")
    parser.add_argument("--quick", action="store_true", help="shorter and fewer pairs")
    parser.add_argument("--guarded", action="store_true", help="only the guarded requests")
    arguments = parser.parse_args()
    needed = ("nginx",) if arguments.guarded else ("nginx", "wrk")
    missing = [tool for tool in needed if not shutil.which(tool)]
    if missing:
        sys.exit("needs " + " and ".join(missing) + "; on Debian: apt-get install nginx-light wrk")
    pairs, seconds = (3, 2) if arguments.quick else (7, 5)
    with tempfile.TemporaryDirectory(prefix="semel-gateway-") as folder:
        service_port = free_port()
        body = "hello, this is the answer of the service behind"
        service = Nginx(folder, "service", SERVICE.format(port=service_port, body=body))
        try:
            wait_for(f"http://127.0.0.1:{service_port}/")
            if not arguments.guarded:
                passing(arguments.pass_through, folder, service_port, pairs, seconds)
            guarded.bench(arguments.semel, folder, service_port, free_port(), wait_for, arguments.quick)
        finally:
            service.stop()


def passing(pass_through, folder, service_port, pairs, seconds):
    nginx_port = free_port()
    proxy = Nginx(folder, "proxy", PROXY.format(service=service_port, port=nginx_port))
    ours = subprocess.Popen([pass_through, f"http://127.0.0.1:{service_port}"], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, text=True)
    try:
        our_port = int(ours.stdout.readline())
        for port in (nginx_port, our_port):
            wait_for(f"http://127.0.0.1:{port}/")
        compare(our_port, ours.pid, nginx_port, proxy.worker(), pairs, seconds)
    finally:
        ours.stdin.close()
        ours.wait()
        proxy.stop()


def compare(our_port, our_pid, nginx_port, nginx_pid, pairs, seconds):
    print(f"semel beside nginx, {pairs} pairs of {seconds} s; ratios are semel / nginx, median (least to most)\n")
    print("connections   requests/s: semel   nginx   ratio                 median latency ratio    CPU a request ratio")
    for connections in CONNECTIONS:
        ours, theirs = [], []
        for _ in range(pairs):
            ours.append(measure(our_port, our_pid, connections, seconds))
            theirs.append(measure(nginx_port, nginx_pid, connections, seconds))

        def ratio(which):
            ratios = [a[which] / b[which] for a, b in zip(ours, theirs)]
            return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"

        print(f"{connections:11}   {statistics.median(a[0] for a in ours):17,.0f} "
              f"{statistics.median(b[0] for b in theirs):7,.0f}   {ratio(0):21} {ratio(1):23} {ratio(2)}", flush=True)


if __name__ == "__main__":
    main()

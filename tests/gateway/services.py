"""What stands behind and before a gateway in the tests: an Express service, nginx, and clients that try again.

Each is a process of the test's own, on a free port of 127.0.0.1, and is stopped by its id.
"""

import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import threading

FOLDER = pathlib.Path(__file__).resolve().parent
DEBIANS_MODULES = "/usr/share/nodejs"  # a foreign node does not look there by itself

NGINX = """
daemon off;
{user}
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{ worker_connections 256; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location /static/ {{ root {folder}; }}
    location / {{ proxy_pass {service}; }}
  }}
}}
"""


def listening_socket():
    """On a free port: who connects waits in its queue until somebody accepts."""
    one = socket.socket()
    one.bind(("127.0.0.1", 0))
    one.listen(128)
    return one


class Service:
    """service.js; without a time limit on its answers: the limit is that of the test."""

    def __init__(self):
        path = os.pathsep.join(filter(None, [os.environ.get("NODE_PATH"), DEBIANS_MODULES]))
        self._process = subprocess.Popen(["node", str(FOLDER / "service.js")], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True, env={**os.environ, "NODE_PATH": path})
        line = self._process.stdout.readline()
        if not line:
            self.stop()
            raise AssertionError("the service did not start")
        self.port = int(line)
        self.url = f"http://127.0.0.1:{self.port}"

    def _control(self, method, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        try:
            connection.request(method, "/control/" + path)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()

    def executions(self, at_least=0):
        """What it did, in order, once there are at least so many."""
        return self._control("GET", f"executions?at_least={at_least}")

    def asked(self):
        """Every POST that came, those too that were answered from memory."""
        return self._control("GET", "asked")

    def fault(self, what):
        """Of the next execution: `crash` ends the connection after it, `hold` keeps its answer back; from `idle` on
        it does what it was too busy for."""
        self._control("POST", "fault/" + what)

    def release(self):
        return self._control("POST", "release")["released"]

    def stop(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Nginx:
    """Serves `static/` of its folder, and passes everything else on to a service."""

    def __init__(self, folder, service_url):
        self.folder = pathlib.Path(folder)
        (self.folder / "static").mkdir(parents=True)
        program = shutil.which("nginx", path=os.environ["PATH"] + os.pathsep + "/usr/sbin")
        if not program:
            raise AssertionError("there is no nginx; script/bootstrap installs it")
        with listening_socket() as listening:
            self.port = listening.getsockname()[1]
            config = self.folder / "nginx.conf"
            # Its workers would be somebody else, who may not look into a test's folder.
            user = "user root root;" if os.geteuid() == 0 else ""
            config.write_text(NGINX.format(folder=self.folder, port=self.port, service=service_url, user=user))
            # It takes the socket over as it would from an older nginx, so that nobody is turned away meanwhile.
            self._process = subprocess.Popen(
                [program, "-c", str(config), "-p", str(self.folder), "-e", str(self.folder / "nginx.log")],
                env={**os.environ, "NGINX": f"{listening.fileno()};"}, pass_fds=[listening.fileno()],
                stderr=subprocess.DEVNULL)
        self.url = f"http://127.0.0.1:{self.port}"

    def stop(self):
        self._process.terminate()
        self._process.wait()


class Cutter:
    """A wire to a port of which the first connection can be cut; the later ones are left alone."""

    def __init__(self, port):
        self._to = port
        self._listening = listening_socket()
        self.port = self._listening.getsockname()[1]
        self._first = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return  # stopped
            server = socket.create_connection(("127.0.0.1", self._to))
            self._first = self._first or [client, server]
            for source, target in ((client, server), (server, client)):
                self._threads.append(threading.Thread(target=self._pass_on, args=(source, target), daemon=True))
                self._threads[-1].start()

    @staticmethod
    def _pass_on(source, target):
        try:
            while data := source.recv(65536):
                target.sendall(data)
        except OSError:
            pass  # cut
        for one in (source, target):
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # the other direction was first

    def cut(self):
        for one in self._first:
            one.shutdown(socket.SHUT_RDWR)

    def stop(self):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


class Answered:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers  # pairs, in their order
        self.body = body

    def all(self, name):
        return [value for other, value in self.headers if other.lower() == name.lower()]

    def header(self, name):
        return next(iter(self.all(name)), None)

    def problem(self):
        return json.loads(self.body)["type"].removeprefix("urn:semel:problem:")

    def replayed(self):
        return self.header("Idempotent-Replayed") == "true"


def curl(folder, url, *arguments):
    """What curl gets in the end, as bytes; its retries are in `arguments`."""
    out = pathlib.Path(folder) / f"curl-{threading.get_ident()}"
    done = subprocess.run(["curl", "-sS", "--noproxy", "*", "-o", str(out), "-D", str(out) + ".head", *arguments, url],
                          capture_output=True, text=True)
    if not pathlib.Path(str(out) + ".head").exists() or not pathlib.Path(str(out) + ".head").stat().st_size:
        raise AssertionError(f"curl: {done.stderr}")
    head = pathlib.Path(str(out) + ".head").read_text().replace("\r\n", "\n").strip("\n").split("\n\n")[-1]
    lines = head.split("\n")
    headers = [tuple(part.strip() for part in line.split(":", 1)) for line in lines[1:]]
    body = out.read_bytes() if out.exists() else b""
    for file in (out, pathlib.Path(str(out) + ".head")):
        file.unlink(missing_ok=True)
    return Answered(int(lines[0].split(" ")[1]), headers, body)


def retrying(url, key, body):
    """The same with urllib3, which tries again by itself."""
    # Debian's own Python, whose urllib3 script/bootstrap installs; another may be first in PATH.
    done = subprocess.run(["/usr/bin/python3", "-B", str(FOLDER / "retrying_client.py"), url, key], input=body,
                          capture_output=True)
    if done.returncode != 0:
        raise AssertionError(done.stderr.decode())
    said = json.loads(done.stdout)
    return Answered(said["status"], [tuple(pair) for pair in said["headers"]], said["body"].encode())


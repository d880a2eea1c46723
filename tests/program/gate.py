"""A gate between the program and PostgreSQL: it passes bytes on, and can swallow the answer to a COMMIT."""

import socket
import threading


class Gate:
    """Listens on `port`. While `swallow` is above zero, it waits until the server has answered the next COMMIT, keeps
    the answer, and cuts the connection: nobody can know whether it was committed."""

    def __init__(self, server):
        self.server = server
        self.swallow = 0
        self.swallowed = 0
        self.lock = threading.Lock()
        self.port = 0
        self.ends = []
        self.flowing = threading.Event()  # while it is not set, nothing passes, and nothing is cut
        self.flowing.set()
        self.open()

    def open(self):
        """Lets connections through, on the same port as before."""
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self.listener,), daemon=True).start()

    def shut(self):
        """Cuts every connection and refuses new ones."""
        self.flowing.set()
        self.close()
        with self.lock:
            ends, self.ends = self.ends, []
        for end in ends:
            self._close(end)

    def close(self):
        self._close(self.listener)

    def _accept(self, listener):
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        upstream = socket.create_connection(self.server)
        with self.lock:
            self.ends += [client, upstream]
        back = threading.Thread(target=self._answers, args=(upstream, client), daemon=True)
        back.start()
        self._pass_on(client, upstream)

    def _pass_on(self, client, upstream):
        try:
            while data := client.recv(65536):
                upstream.sendall(data)
        except OSError:
            pass
        self._close(upstream)

    def _swallows(self, data):
        """By the server's word: a client that has COMMIT prepared does not write it again."""
        with self.lock:
            if self.swallow == 0 or b"COMMIT\0" not in data:
                return False
            self.swallow -= 1
            self.swallowed += 1
            return True

    def _answers(self, upstream, client):
        try:
            while data := upstream.recv(65536):
                if self._swallows(data):
                    break
                self.flowing.wait()
                client.sendall(data)
        except OSError:
            pass
        self._close(client)
        self._close(upstream)

    @staticmethod
    def _close(end):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        end.close()

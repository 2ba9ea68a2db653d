"""What init_process_group() and a barrier are to a script, in the standard library: rank 0 listens where MASTER_ADDR and
MASTER_PORT say, and each barrier waits for all."""

import os
import socket
import time


class ProcessGroup:
    def __init__(self):
        self.peers = []
        rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        if rank == 0:
            with socket.create_server(address) as listener:
                listener.settimeout(60)
                self.peers = [listener.accept()[0] for _ in range(size - 1)]
        else:
            self.peers = [self.connect(address)]
        self.leads = rank == 0

    @staticmethod
    def connect(address):
        end = time.monotonic() + 60
        while True:
            try:
                return socket.create_connection(address, timeout=60)
            except ConnectionRefusedError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)

    def barrier(self):
        if not self.leads:
            self.peers[0].sendall(b".")
        for peer in self.peers:
            peer.settimeout(None)
            if peer.recv(1) != b".":
                raise ConnectionError("connection closed by peer")
        if self.leads:
            for peer in self.peers:
                peer.sendall(b".")

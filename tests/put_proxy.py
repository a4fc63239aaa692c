"""put_proxy.py PORT SERVER-PORT HOW: a proxy that fails in one way. It forwards each request on
a separate connection.

  early    answers 200 to every other PUT before it has read the body, and closes the connection
  buffer   as early, when the client has sent the body but only the kernels have it
  discard  answers 200 to every other PUT before it has read the body, reads it and forwards nothing
  late     answers a second after the server
  never    forwards PUTs, and never answers
  byte     forwards byte by byte
  cut      closes the connection of 50 PUTs, every other one, each at a different byte from the
           start of the request to the end of the answer"""
import socket
import sys
import threading
import time

CUTS, CUTS_IN_REQUEST = 50, 40
numbers = iter(range(1, 1 << 30))
how = sys.argv[3]


def read_head(connection, rest):
    while b"\r\n\r\n" not in rest:
        part = connection.recv(65536)
        if not part:
            return None, b""
        rest += part
    head, rest = rest.split(b"\r\n\r\n", 1)
    return head + b"\r\n\r\n", rest


def length_of(head):
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            return int(line.split(b":")[1])
    return 0


def read_message(connection, rest=b"", has_body=True):
    head, rest = read_head(connection, rest)
    if head is None:
        return None, b""
    if b"100-continue" in head.lower():
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        lines = head.split(b"\r\n")
        head = b"\r\n".join(line for line in lines if not line.lower().startswith(b"expect:"))
    n = length_of(head) if has_body else 0
    # Appending to bytes would copy them, a quadratic time for large files.
    rest = bytearray(rest)
    while len(rest) < n:
        part = connection.recv(65536)
        if not part:
            return None, b""
        rest += part
    return head + rest[:n], rest[n:]


def send(connection, data):
    step = 1 if how == "byte" else 65536
    for at in range(0, len(data), step):
        connection.sendall(data[at : at + step])


def early(connection, head, rest):
    if how == "buffer":
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        time.sleep(0.5)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    if how == "discard":
        part, rest = b" ", bytearray(rest)
        while part and len(rest) < length_of(head):
            part = connection.recv(65536)
            rest += part
        return rest[length_of(head) :] if part else None
    connection.shutdown(socket.SHUT_WR)
    time.sleep(0.5)
    return None


def forward(connection, request, is_put, number):
    place = (number + 1) // 2 if how == "cut" and number % 2 else CUTS + 1
    with socket.create_connection(("127.0.0.1", int(sys.argv[2]))) as server:
        server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if place < CUTS_IN_REQUEST:
            return send(server, request[: len(request) * place // CUTS_IN_REQUEST])
        send(server, request)
        answer, _ = read_message(server, b"", is_put)
    if how == "late":
        time.sleep(1)
    if how == "never" and is_put:
        time.sleep(1000)
    if place <= CUTS:
        return send(connection, answer[: len(answer) * (place - CUTS_IN_REQUEST) // (CUTS - CUTS_IN_REQUEST + 1)])
    send(connection, answer)
    return True


def serve(connection):
    rest = b""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    while rest is not None:
        head, rest = read_head(connection, rest)
        if head is None:
            break
        is_put = head.startswith(b"PUT ")
        number = next(numbers) if is_put else 0
        if how in ("early", "buffer", "discard") and number % 2:
            rest = early(connection, head, rest)
            continue
        request, rest = read_message(connection, head + rest)
        if request is None or not forward(connection, request, is_put, number):
            break
    connection.close()


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
if how == "buffer":
    # Less than a body, which therefore fills part of the client's buffer. Connections inherit the size.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

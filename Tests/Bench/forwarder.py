"""A process that forwards TCP connections and delays what it forwards, as a long line does.

    python3 -m Bench.forwarder PORT       forwards a port of its own to the port

It writes its own port as a line. Each line that it reads is a command: `latency MS`, the milliseconds
of a round trip from now on, or `traffic`, which it answers with the bytes that went up and down.
"""

import asyncio
import sys

# Bytes under way in one direction of one connection: at 50 ms, more than 600 MB/s.
MOST_UNDER_WAY = 32 << 20


class Line:
    """What all connections share."""

    def __init__(self) -> None:
        self.one_way = 0.0
        self.up = 0
        self.down = 0


class End(asyncio.Protocol):
    """One end of a connection: what it gets leaves at the other end, later."""

    def __init__(self, line: Line, is_client: bool):
        self.line = line
        self.is_client = is_client
        self.other: End | None = None
        self.transport: asyncio.Transport | None = None
        self.under_way = 0
        self.due = 0.0
        self.is_over = False
        self.waiting: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(high=MOST_UNDER_WAY)

    def data_received(self, data: bytes) -> None:
        if self.is_client:
            self.line.up += len(data)
        else:
            self.line.down += len(data)
        self.under_way += len(data)
        if self.under_way > MOST_UNDER_WAY and self.transport:
            self.transport.pause_reading()
        self.later(lambda: self.deliver(data))

    def later(self, act) -> None:
        """In order, one way later."""
        loop = asyncio.get_running_loop()
        self.due = max(self.due, loop.time() + self.line.one_way)
        loop.call_at(self.due, act)

    def deliver(self, data: bytes) -> None:
        before, self.under_way = self.under_way, self.under_way - len(data)
        if before > MOST_UNDER_WAY >= self.under_way and self.transport:
            self.transport.resume_reading()
        if self.other is None:
            self.waiting.append(data)
        elif self.other.transport:
            self.other.transport.write(data)

    def meet(self, other: "End") -> None:
        """The connection's other end is there."""
        self.other = other
        for data in self.waiting:
            if other.transport:
                other.transport.write(data)
        self.waiting = []

    def connection_lost(self, error: Exception | None) -> None:
        self.later(self.close_other)

    def close_other(self) -> None:
        self.is_over = True
        if self.other and self.other.transport:
            self.other.transport.close()


async def main(target: int) -> None:
    loop = asyncio.get_running_loop()
    line = Line()

    async def connect(client: End) -> None:
        # The server hears of the connection when its first packet would be there.
        await asyncio.sleep(line.one_way)
        try:
            _, server = await loop.create_connection(
                lambda: End(line, is_client=False), "127.0.0.1", target)
        except OSError:
            if client.transport:
                client.transport.close()
            return
        server.meet(client)
        client.meet(server)
        if client.is_over:
            client.close_other()

    tasks: set[asyncio.Task[None]] = set()

    def accepted() -> End:
        client = End(line, is_client=True)
        task = loop.create_task(connect(client))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        return client

    listener = await loop.create_server(accepted, "127.0.0.1", 0, backlog=1024)
    print(listener.sockets[0].getsockname()[1], flush=True)
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while words := (await reader.readline()).decode().split():
        if words[0] == "latency":
            line.one_way = int(words[1]) / 2000
            print("ok", flush=True)
        else:
            print(line.up, line.down, flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))

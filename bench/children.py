"""What processes of the benchmark's own have to say."""

from multiprocessing.connection import Connection as Pipe

from bench.http import ConnectionLost


def received(pipe: Pipe, child: str) -> object:
    """The next message of a child process. Raises ConnectionLost where it has ended instead."""
    try:
        message: object = pipe.recv()
    except EOFError:
        raise ConnectionLost(f"{child} ended early; its own message is above") from None
    return message

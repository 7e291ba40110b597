# SPDX-License-Identifier: Apache-2.0
"""Tasks on a Dask cluster: an existing one, ``tls://host:port``, or SLURM jobs, ``slurm:key=value,...``.

Workers need the same flitlab, but no shared disk: scenarios and plugin files are sent. Dask repeats a call on another
worker if its worker is lost. Kernels are compiled into the cache folder of the worker.

Calls and results are pickled: whoever can reach the scheduler can run code on the workers, and here. Only TLS with
certificates, or a private network, prevents that.
"""

import hashlib
import importlib.util
import ipaddress
import pickle
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from flitlab.models.files import replace_file
from flitlab.models.mappings import Fields
from flitlab.sim.config.plugins import load_plugin
from flitlab.sim.config.text import resolve
from flitlab.sim.experiment.progress import say
from flitlab.sim.experiment.task import Outcome, ScenarioFile

TIMEOUT = 10
"""Seconds within which a scheduler must answer."""

REFRESH = 2.0
"""Seconds until the number of threads of a cluster is read again."""


class ClusterError(Exception):
    """A cluster that is missing or lost; the message gives the reason."""


@contextmanager
def connected(address: str, plugins: Sequence[str] = ()) -> Iterator["DaskPool"]:
    """The cluster of ``--cluster`` as a pool; its workers load the plugins.

    Raises :class:`ClusterError` if it cannot be reached.
    """
    try:
        from distributed import Client
    except ImportError:
        raise ClusterError("needs Dask, which is not installed: pip install 'flitlab[cluster]'") from None
    kind, _, rest = address.partition(":")
    if kind != "slurm" and "://" not in address:
        raise ClusterError("must be tcp://host:port or tls://host:port of a Dask scheduler, or slurm:key=value,...")
    jobs = _slurm(rest) if kind == "slurm" else None
    if jobs is None:
        _check_scheduler(address)
    try:
        client = Client(address if jobs is None else jobs, timeout=TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        if jobs is not None:
            jobs.close()
        raise ClusterError(f"does not answer: {error or type(error).__name__}") from None
    try:
        if jobs is None and not client.nthreads():
            say(f"{address}: has no workers yet; waiting for the first one")
        yield DaskPool(client, plugins)
    finally:
        client.close()
        if jobs is not None:
            jobs.close()


def _check_scheduler(address: str) -> None:
    """Raise :class:`ClusterError` unless a scheduler answers: a client would retry indefinitely."""
    from distributed import Security
    from distributed.comm.core import connect

    arguments = Security().get_connection_args("client")
    if address.startswith("tls://") and arguments.get("ssl_context") is None:
        raise ClusterError(NO_CERTIFICATES)
    if is_unprotected(address):
        say(f"--cluster {address}: {UNPROTECTED}")

    async def try_it() -> None:
        comm = await connect(address, timeout=TIMEOUT, **arguments)
        await comm.close()

    import asyncio

    try:
        asyncio.run(try_it())
    except Exception as error:  # what answers may be anything
        raise ClusterError(f"no Dask scheduler answers: {error or type(error).__name__}") from None


NO_CERTIFICATES = (
    "TLS needs certificates, which Dask's configuration names (distributed.comm.tls); see docs/cluster.md, Trust"
)

UNPROTECTED = (
    "anyone who can reach the port of this scheduler can run code on its workers, and here: use TLS (tls://), or a "
    "tunnel to localhost; see docs/cluster.md, Trust"
)

SECURE = ("tls", "wss", "inproc")
"""Protocols of Dask that require a certificate, or stay within a process."""


def is_unprotected(address: str) -> bool:
    """Whether others may be able to reach the scheduler at an address.

    >>> [is_unprotected(f"{at}:8786") for at in ("tls://node1", "tcp://localhost", "tcp://127.0.0.1", "tcp://[::1]")]
    [False, False, False, False]
    >>> [is_unprotected(f"{at}:8786") for at in ("tcp://node1", "tcp://10.0.0.1", "tcp://0.0.0.0", "ucx://node1")]
    [True, True, True, True]
    """
    try:
        parts = urlsplit(address)
        host = parts.hostname or ""
        return not (parts.scheme in SECURE or host == "localhost" or ipaddress.ip_address(host).is_loopback)
    except ValueError:
        return True  # a host name, which may resolve to any address


def _slurm(options: str) -> Any:
    """A cluster of SLURM jobs. ``jobs`` is their number, other keys are parameters of dask-jobqueue.

    It uses TLS with its own certificates, unless ``security=false`` or the package for it is missing.
    """
    try:
        from dask_jobqueue import SLURMCluster  # type: ignore[attr-defined]  # it has no __all__
    except ImportError:
        raise ClusterError("needs dask-jobqueue, which is not installed: pip install 'flitlab[cluster]'") from None
    parameters: Fields = {"cores": 1, "processes": 1}
    for part in filter(None, options.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise ClusterError(f"{part}: must be key=value, for instance slurm:jobs=8,memory=4GB,queue=short")
        parameters[key.strip()] = value if ":" in value else resolve(value)  # a time is no number
    jobs = parameters.pop("jobs", 1)
    if not isinstance(jobs, int) or jobs < 1:
        raise ClusterError(f"jobs={jobs}: must be a number of jobs")
    if "memory" not in parameters:
        raise ClusterError("memory is missing: what a job may use, for instance slurm:jobs=8,memory=4GB")
    wants_tls = parameters.pop("security", True) is not False
    secure = _secure(parameters) if wants_tls else {}
    try:
        cluster = SLURMCluster(**parameters, **secure)
    except (TypeError, ValueError, OSError) as error:
        raise ClusterError(str(error).partition(". ")[0]) from None
    if not secure:
        why = "the package cryptography is missing (pip install 'flitlab[cluster]')" if wants_tls else "security=false"
        say(f"--cluster slurm: no TLS, {why}: {UNPROTECTED}")
    cluster.scale(jobs=jobs)
    return cluster


def _secure(parameters: Fields) -> Fields:
    """Parameters of a scheduler and workers with mutual TLS; {} if TLS is not available.

    The private key of the workers is a file that only this user can read, in a folder that the nodes share.
    """
    if importlib.util.find_spec("cryptography") is None:
        return {}
    import dask

    configured = dask.config.get("jobqueue.slurm.shared-temp-directory", None)
    folder = {} if configured or "shared_temp_directory" in parameters else {"shared_temp_directory": str(Path.home())}
    return {"security": True, **folder}


class DaskPool:
    """A Dask cluster, through the executor of its client."""

    def __init__(self, client: Any, plugins: Sequence[str]):
        from flitlab.models.jit import source_hash

        self._client = client
        self._executor = client.get_executor(pure=False)
        self._state = source_hash()
        self._plugins = tuple((name, _text(name)) for name in plugins)
        self._contents: dict[Path, Any] = {}
        self._threads, self._checked_at = 0, 0.0

    @property
    def max_in_flight(self) -> int:
        """Calls in flight at most: two per thread, to hide the latency of the network."""
        if time.monotonic() - self._checked_at > REFRESH:
            self._threads, self._checked_at = sum(self._client.nthreads().values()), time.monotonic()
        return 2 * max(1, self._threads)

    def submit(self, call: Callable[..., Outcome], *arguments: object) -> "Future[Outcome]":
        """Make a call on some worker."""
        contents = [self._content(argument.path) for argument in arguments if isinstance(argument, ScenarioFile)]
        sent = pickle.dumps((call, arguments))
        future = self._executor.submit(carry_out, self._state, self._plugins, sent, *contents)
        answer: Future[Outcome] = Future()
        future.add_done_callback(lambda future: _forward_result(future, answer))
        return answer

    def _content(self, path: Path) -> Any:
        """The content of a file, as the result of a task, which Dask recomputes if a worker is lost."""
        if path not in self._contents:
            content = path.read_bytes()
            key = f"scenario-{hashlib.sha256(content).hexdigest()}"
            self._contents[path] = self._client.submit(bytes, content, key=key)
        return self._contents[path]

    def reopen(self) -> None:
        """No effect: Dask replaces its own workers."""

    def close(self, abandon: bool = False) -> None:
        """Leave the cluster as it was."""
        self._executor.shutdown(wait=not abandon)
        self._contents.clear()


def _text(plugin: str) -> str | None:
    """The text of a plugin file; None for a module."""
    return Path(plugin).read_text("utf-8") if plugin.endswith(".py") else None


def _forward_result(future: "Future[bytes]", answer: "Future[Outcome]") -> None:
    from distributed import KilledWorker

    try:
        answer.set_result(pickle.loads(future.result()))
    except KilledWorker as error:
        answer.set_result(Outcome(problem=f"its worker died repeatedly (out of memory?): {error}"))
    except ClusterError as error:
        answer.set_exception(error)
    except CancelledError:
        answer.set_exception(ClusterError("the connection to the scheduler is lost"))
    except Exception as error:
        answer.set_exception(ClusterError(f"{type(error).__name__}: {error}"))


def carry_out(state: str, plugins: tuple[tuple[str, str | None], ...], call_bytes: bytes, *contents: bytes) -> bytes:
    """Make a call in a worker; returns the pickled outcome.

    Parameters
    ----------
    state: hash of the caller's sources.
    plugins: (name, text) of each; loaded before the call is unpickled.
    call_bytes: function and arguments, pickled.
    contents: of each :class:`ScenarioFile` among the arguments.

    Raises
    ------
    ClusterError: the worker has other sources.
    """
    from flitlab.models.jit import source_hash

    if source_hash() != state:
        raise ClusterError("a worker has another version of flitlab or Numba: results would not be the same")
    _load(plugins)
    call, arguments = pickle.loads(call_bytes)
    payloads = iter(contents)
    return pickle.dumps(call(*(next(payloads) if isinstance(part, ScenarioFile) else part for part in arguments)))


_loading = threading.Lock()
_loaded: dict[tuple[str, str | None], str] = {}
"""Plugin -> its file or module in this process."""


def _load(plugins: tuple[tuple[str, str | None], ...]) -> None:
    """Load plugins once; a file that is missing or different here is written first."""
    with _loading:
        for name, text in plugins:
            if (name, text) in _loaded:
                continue
            path = Path(name)
            if text is not None and not (path.exists() and path.read_text("utf-8") == text):
                path = Path(tempfile.mkdtemp(prefix="flitlab-plugin-")) / path.name
                replace_file(path, text)
            load_plugin(str(path) if text is not None else name)
            _loaded[name, text] = str(path)

"""Tasks on a Dask cluster: one that is there, ``tcp://host:port``, or one of SLURM jobs, ``slurm:key=value,...``.

Workers need this flitlab, but no disk of ours: scenarios and plugin files are sent. A call whose worker is lost is made
again by Dask on another one. Kernels are compiled into the cache folder of the worker.
"""

import hashlib
import pickle
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sim.config.load import resolve
from sim.config.plugins import load_plugin
from sim.experiment.progress import say
from sim.experiment.task import Outcome, ScenarioFile

TIMEOUT = 10
"""Seconds within which a scheduler must answer."""

REFRESH = 2.0
"""Seconds for which the number of threads of a cluster is taken to be the same."""


class ClusterError(Exception):
    """There is no cluster to work with, or no longer; the message says why."""


@contextmanager
def connected(address: str, plugins: Sequence[str] = ()) -> Iterator["DaskPool"]:
    """The cluster that ``--cluster`` names, as a pool whose workers have loaded the plugins.

    Raises :class:`ClusterError` if it cannot be had.
    """
    try:
        from distributed import Client
    except ImportError:
        raise ClusterError("needs Dask, which is not installed: pip install 'flitlab[cluster]'") from None
    kind, _, rest = address.partition(":")
    if kind != "slurm" and "://" not in address:
        raise ClusterError("must be tcp://host:port of a Dask scheduler, or slurm:key=value,...")
    jobs = _slurm(rest) if kind == "slurm" else None
    try:
        client = Client(address if jobs is None else jobs, timeout=TIMEOUT, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ClusterError(f"does not answer: {error or type(error).__name__}") from None
    try:
        if jobs is None and not client.nthreads():
            say(f"{address}: has no workers yet; waiting for some")
        yield DaskPool(client, plugins)
    finally:
        client.close()
        if jobs is not None:
            jobs.close()


def _slurm(options: str) -> Any:
    """A cluster of SLURM jobs. ``jobs`` of them are asked for, all else are parameters of dask-jobqueue's."""
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError:
        raise ClusterError("needs dask-jobqueue, which is not installed: pip install 'flitlab[cluster]'") from None
    given: dict[str, Any] = {"cores": 1, "processes": 1}
    for part in filter(None, options.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not key:
            raise ClusterError(f"{part}: must be key=value, for instance slurm:jobs=8,memory=4GB,queue=short")
        given[key.strip()] = value if ":" in value else resolve(value)  # a time is no number
    jobs = given.pop("jobs", 1)
    if not isinstance(jobs, int) or jobs < 1:
        raise ClusterError(f"jobs={jobs}: must be a number of jobs")
    if "memory" not in given:
        raise ClusterError("memory is missing: what a job may use, for instance slurm:jobs=8,memory=4GB")
    try:
        cluster = SLURMCluster(**given)
    except (TypeError, ValueError) as error:
        raise ClusterError(str(error).partition(". ")[0]) from None
    cluster.scale(jobs=jobs)
    return cluster


class DaskPool:
    """A Dask cluster, through the executor of its client."""

    def __init__(self, client: Any, plugins: Sequence[str]):
        from models.jit import source_hash

        self._client = client
        self._executor = client.get_executor(pure=False)
        self._state = source_hash()
        self._plugins = tuple((name, _text(name)) for name in plugins)
        self._contents: dict[Path, Any] = {}
        self._threads, self._asked = 0, 0.0

    @property
    def room(self) -> int:
        """Calls that may be under way: a few are on their way to a worker."""
        if time.monotonic() - self._asked > REFRESH:
            self._threads, self._asked = sum(self._client.nthreads().values()), time.monotonic()
        return 2 * max(1, self._threads)

    def submit(self, call: Callable[..., Outcome], *arguments: Any) -> "Future[Outcome]":
        """Makes a call on some worker."""
        contents = [self._content(argument.path) for argument in arguments if isinstance(argument, ScenarioFile)]
        sent = pickle.dumps((call, arguments))
        future = self._executor.submit(carry_out, self._state, self._plugins, sent, *contents)
        answer: Future[Outcome] = Future()
        future.add_done_callback(lambda future: _pass_on(future, answer))
        return answer

    def _content(self, path: Path) -> Any:
        """The content of a file, as the result of a task: what a lost worker held of it, Dask makes again."""
        if path not in self._contents:
            content = path.read_bytes()
            key = f"scenario-{hashlib.sha256(content).hexdigest()}"
            self._contents[path] = self._client.submit(bytes, content, key=key)
        return self._contents[path]

    def reopen(self) -> None:
        """Nothing: Dask replaces its own."""

    def close(self, abandon: bool = False) -> None:
        """Leaves the cluster as it was."""
        self._executor.shutdown(wait=not abandon)
        self._contents.clear()


def _text(plugin: str) -> str | None:
    """Of a plugin that is a file."""
    return Path(plugin).read_text("utf-8") if plugin.endswith(".py") else None


def _pass_on(future: Future, answer: "Future[Outcome]") -> None:
    from distributed import KilledWorker

    try:
        answer.set_result(pickle.loads(future.result()))
    except KilledWorker as error:
        answer.set_result(Outcome(problem=f"its worker died again and again (out of memory?): {error}"))
    except ClusterError as error:
        answer.set_exception(error)
    except CancelledError:
        answer.set_exception(ClusterError("the scheduler has gone"))
    except Exception as error:
        answer.set_exception(ClusterError(f"{type(error).__name__}: {error}"))


def carry_out(state: str, plugins: tuple[tuple[str, str | None], ...], sent: bytes, *contents: bytes) -> bytes:
    """In a worker: makes a call and returns the pickled outcome.

    state: hash of the sources that the caller has. sent: function and arguments, pickled, as only a process that has
    loaded the plugins can read them. contents: of the :class:`ScenarioFile` among the arguments.
    """
    from models.jit import source_hash

    if source_hash() != state:
        raise ClusterError("a worker has another version of flitlab or Numba: results would not be the same")
    _load(plugins)
    call, arguments = pickle.loads(sent)
    given = iter(contents)
    return pickle.dumps(call(*(next(given) if isinstance(part, ScenarioFile) else part for part in arguments)))


_loading = threading.Lock()
_loaded: dict[tuple[str, str | None], str] = {}
"""Plugin -> where this process has it from."""


def _load(plugins: tuple[tuple[str, str | None], ...]) -> None:
    """Loads plugins, once; a file that is not here, or not the same, is written first."""
    with _loading:
        for name, text in plugins:
            if (name, text) in _loaded:
                continue
            path = Path(name)
            if text is not None and not (path.exists() and path.read_text("utf-8") == text):
                path = Path(tempfile.mkdtemp(prefix="flitlab-plugin-")) / path.name
                path.write_text(text, "utf-8")
            load_plugin(str(path) if text is not None else name)
            _loaded[name, text] = str(path)

"""Files of any file system that the driver's Hadoop reaches, with the session's settings and credentials, by py4j."""

from typing import Any, NamedTuple

from ledgerops.agent.sessions import Session
from ledgerops.common.masking import mask

ABSENT = "java.io.FileNotFoundException"
MAX_REASON_CHARACTERS = 200


class FileError(Exception):
    """A file cannot be read; the message says why."""


class FileStatus(NamedTuple):
    """Size in bytes, and when the file was modified (epoch seconds)."""

    size: int
    modified: float


class HadoopFiles:
    """The file systems of a classic session. A platform may forbid what is asked of them: that is a FileError, too."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._conf: Any = None
        self._path: Any = None  # Java's classes: to find one by its name takes five calls into the JVM
        self._first: Any = None
        self._to_bytes: Any = None

    def exists(self, path: str) -> bool:
        """Whether there is a file. Where there is none, this takes a thirtieth of the CPU time of `status`, whose
        exception py4j must translate. Raises FileError."""
        try:
            system, place = self._reach(path)
            return bool(system.exists(place))
        except Exception as error:
            raise FileError(reason_of(error)) from None

    def status(self, path: str) -> FileStatus | None:
        """A file's size and time; None where there is no such file. Raises FileError."""
        try:
            system, place = self._reach(path)
            found = system.getFileStatus(place)
            return FileStatus(int(found.getLen()), int(found.getModificationTime()) / 1000)
        except Exception as error:
            raised = getattr(error, "java_exception", None)
            if raised is not None and str(raised.getClass().getName()) == ABSENT:
                return None
            raise FileError(reason_of(error)) from None

    def read(self, path: str, limit: int) -> bytes:
        """The first `limit` bytes of a file. Raises FileError."""
        try:
            return self._read(*self._reach(path), limit)
        except Exception as error:
            raise FileError(reason_of(error)) from None

    def find(self, path: str, limit: int) -> bytes | None:
        """As `read`; None where there is no such file."""
        try:
            system, place = self._reach(path)
            return self._read(system, place, limit) if system.exists(place) else None
        except Exception as error:
            raise FileError(reason_of(error)) from None

    def listing(self, folder: str) -> str:
        """The paths in a folder, each followed by a comma or, the last, by a brace: as one text, for each name by
        itself would be a call into the JVM. Empty where there is no folder. Raises FileError."""
        try:
            system, place = self._reach(folder)
            apache = self._session.spark.sparkContext._jvm.org.apache
            if not system.exists(place):
                return ""
            paths = apache.hadoop.fs.FileUtil.stat2Paths(system.listStatus(place))
            return str(apache.commons.lang3.ArrayUtils.toString(paths))
        except Exception as error:
            raise FileError(reason_of(error)) from None

    def _reach(self, path: str) -> tuple[Any, Any]:
        """Hadoop's file system of a path, and the path. Raises what py4j raises."""
        spark = self._session.spark
        if self._conf is None:
            apache = spark.sparkContext._jvm.org.apache
            self._path, self._first = apache.hadoop.fs.Path, apache.commons.io.input.BoundedInputStream
            self._to_bytes = apache.commons.io.IOUtils.toByteArray
            self._conf = spark._jsparkSession.sessionState().newHadoopConf()
        place = self._path(path)
        return place.getFileSystem(self._conf), place

    def _read(self, system: Any, place: Any, limit: int) -> bytes:
        stream = system.open(place)
        try:
            return bytes(self._to_bytes(self._first(stream, limit)))  # Java 8 has no readNBytes
        finally:
            stream.close()


def reason_of(error: Exception) -> str:
    """Why py4j raised an error, in one line."""
    raised = getattr(error, "java_exception", None)
    text = str(raised.toString()) if raised is not None else f"{type(error).__name__}: {error}"
    return mask(text.split("\n", 1)[0])[:MAX_REASON_CHARACTERS]

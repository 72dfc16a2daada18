"""Log lines as JSON: one object a line, with the members that a line was given, such as those of the access log."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

_KNOWN = {*vars(logging.makeLogRecord({})), "message", "asctime", "color_message"}


class JsonFormatter(logging.Formatter):
    """{"time", "level", "logger", "message", ...}; time is ISO 8601 in UTC. Errors have their traceback as "exception"."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: value for name, value in vars(record).items() if name not in _KNOWN}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)

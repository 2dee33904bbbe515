"""All causes by their codes. Which entry of a log tells of which is in `rules`."""

from collections.abc import Mapping

from mizzen.diagnose.access_logs.connection_causes import CONNECTION_CAUSES
from mizzen.diagnose.access_logs.explanation import Explanation
from mizzen.diagnose.access_logs.request_causes import REQUEST_CAUSES

CAUSES: Mapping[str, Explanation] = {**CONNECTION_CAUSES, **REQUEST_CAUSES}

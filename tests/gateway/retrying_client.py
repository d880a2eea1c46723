#!/usr/bin/python3
"""POSTs its standard input, with urllib3's own retries, and prints the last answer as JSON.

    retrying_client.py URL KEY
"""

import json
import sys

import urllib3
from urllib3.util.retry import Retry

url, key = sys.argv[1:]
# A broken connection, and the two answers that ask to come again; Retry-After is kept to.
retries = Retry(total=40, allowed_methods=None, status_forcelist=[409, 503], backoff_factor=0.05,
                respect_retry_after_header=True)
pool = urllib3.PoolManager(retries=retries)
answer = pool.request("POST", url, body=sys.stdin.buffer.read(), headers={"Idempotency-Key": key})
json.dump({"status": answer.status, "headers": list(answer.headers.items()), "body": answer.data.decode()}, sys.stdout)

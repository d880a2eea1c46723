"""Webhooks signed as their senders sign them: each function returns the headers of one delivery attempt."""

import base64
import hashlib
import hmac
import time


def _mac(secret, text):
    return hmac.new(secret.encode(), text, hashlib.sha256)


def stripe(body, secret, at=None):
    stamp = str(int(time.time() if at is None else at))
    return {"Stripe-Signature": f"t={stamp},v1={_mac(secret, stamp.encode() + b'.' + body).hexdigest()}"}


def github(body, secret, delivery):
    return {"X-Hub-Signature-256": "sha256=" + _mac(secret, body).hexdigest(), "X-GitHub-Delivery": delivery}


def shopify(body, secret, webhook_id):
    return {"X-Shopify-Hmac-Sha256": base64.b64encode(_mac(secret, body).digest()).decode(),
            "X-Shopify-Webhook-Id": webhook_id}


def slack(body, secret, retry=None):
    stamp = str(int(time.time()))
    headers = {"X-Slack-Request-Timestamp": stamp,
               "X-Slack-Signature": "v0=" + _mac(secret, b"v0:" + stamp.encode() + b":" + body).hexdigest()}
    if retry:
        headers |= {"X-Slack-Retry-Num": str(retry), "X-Slack-Retry-Reason": "http_timeout"}
    return headers

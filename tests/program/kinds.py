"""The kinds of effect that a message may have: rows of its own, a publication, an outside call. What the configuration
says of each, and where what became of it is counted."""

from outside import Receiver, fates, provider_text, set_up

CONFIG = """
store: {store}
admin: none
shutdown_deadline: 120s
sources:
  payments: {source}
{around}
handlers:
  pay:
    from: payments
    key: /id
    execute: [ "INSERT INTO effects (id, cents) VALUES (:key, :/cents)" ]
    {more}
"""
SOURCES = {"file": "{{ file: {file} }}",
           "http": "{{ http: {{ listen: \"127.0.0.1:{port}\", path: /pay, verify: none }} }}"}
FEW_ATTEMPTS = "retry: { attempts: 2, delay: 10ms }"
ANSWER = "answer: { status: 201, body: { paid: \":/cents\" } }"


def service_text(kind, source, place, store):
    """A configuration whose handler has this kind of effect."""
    more = kind.more() + (f"\n    {FEW_ATTEMPTS}" if source == "file" else "")
    return CONFIG.format(store=store, source=SOURCES[source].format(**place), around=kind.around, more=more)


class OwnRows:
    """Effect: a row in the user's table, and nothing else."""
    name = "own rows"
    around = ""
    answered = 201

    def __init__(self, cells):
        pass

    def more(self):
        return ANSWER

    def happened(self):
        """What happened outside, once each: the payment's id, its cents, and by what the outside tells it apart."""
        return set()

    def requests(self):
        """How many came to the outside, repeats too."""
        return 0

    def once(self, _database, _ids):
        """How often each happened outside."""
        return {}

    def wait_for(self, count):
        """Until so many have happened outside."""

    def end(self):
        pass


class Publication(OwnRows):
    """The row, and a webhook for it."""
    name = "publication"

    def __init__(self, cells):
        self.receiver = Receiver()
        self.around = f'targets: {{ events: {{ url: "{self.receiver.url}" }} }}'

    def more(self):
        return ANSWER + '\n    publish: { to: events, order_key: /id, body: { id: ":/id", cents: ":/cents" } }'

    def happened(self):
        return {(body["id"], body["cents"], publication) for publication, body in self.receiver.received}

    def requests(self):
        return len(self.receiver.received)

    def once(self, _database, ids):
        """How many publications of each payment came, by their ids: each may come more than once."""
        came = [one for one, _, _ in self.happened()]
        return {one: came.count(one) for one in ids}

    def wait_for(self, count):
        self.receiver.wait_for(count)

    def end(self):
        self.receiver.shutdown()
        self.receiver.server_close()


class OutsideCall(OwnRows):
    """The row, a charge at a provider that knows its keys, and a row for what came of it."""
    name = "outside call"
    answered = 200
    policy = "idempotent"
    lease = "15s"

    def __init__(self, cells):
        self.bank = cells.bank()
        set_up(self.bank, self.policy)
        self.around = f"providers:\n  bank:\n    {provider_text(self.policy, self.bank)}"

    def more(self):
        return f"""waiting: {{ again: wait, late: 409 }}
    call:
      provider: bank
      url: "{self.bank.url}/charges"
      body: {{ amount: ":/cents", currency: EUR, reference: ":/id" }}
      reference: /id
      timeout: 60s
      lease: {self.lease}
      settle: {{ execute: [ "INSERT INTO outcomes (id, outcome) VALUES (:/id, :outcome)" ] }}"""

    def happened(self):
        """By the provider's own ledger."""
        return {(one["reference"], one["amount"], one["id"]) for one in self.bank.charges()}

    def requests(self):
        return len([one for one in self.bank.received() if one["method"] == "POST"])

    def once(self, database, ids):
        """How often each was charged, by the provider's own ledger; all are settled."""
        found = fates(database, self.bank, ids)
        return {reference: fate.charges if fate.settled else f"not settled: {fate}"
                for reference, fate in found.items()}

    def wait_for(self, count):
        self.bank.ledger(at_least=count)

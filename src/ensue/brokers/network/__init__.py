"""Links of a broker to brokers of other processes, by the TCP links of the event channel.

from ensue.brokers import Broker
from ensue.brokers.network import Links

links = Links(Broker("hub"))
host, port = links.listen(secret=secret)               # in one process
up = Links(Broker("leaf")).connect(host, port, secret=secret)  # in another one
"""

from ensue.brokers.network.links import Links

__all__ = ["Links"]

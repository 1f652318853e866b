"""Every key format of the table. The tenant stands first in each partition key, so no query can leave it.

Ids made by us have a fixed alphabet. Whatever comes from outside (a subject, a name) enters a key only as its SHA-256, so that no
crafted value can collide with another key, whatever characters it has.
"""

import base64
import hashlib

PLATFORM = "platform"  # what belongs to no tenant: site settings, the list of tenants


def digest(*parts: str) -> str:
    """A key part for outside text: collisions are infeasible, and the parts cannot run into each other."""
    joined = "".join(f"{len(part.encode())}:{part}" for part in parts)
    return base64.urlsafe_b64encode(hashlib.sha256(joined.encode()).digest()).rstrip(b"=").decode()


# scopes of memory
TENANT_SCOPE = "t"


def subject_scope(external_subject_id: str) -> str:
    return f"s.{digest(external_subject_id)}"


def knowledge_base_scope(knowledge_base_id: str) -> str:
    return f"k.{knowledge_base_id}"


def owner(external_subject_id: str | None) -> str:
    """Whose a conversation is: one subject's, or nobody's in particular."""
    return TENANT_SCOPE if external_subject_id is None else subject_scope(external_subject_id)


# tenancy
def tenant(tenant_id: str) -> tuple[str, str]:
    return f"{tenant_id}#tenant", "tenant"


def tenant_list() -> str:
    return f"{PLATFORM}#tenants"


def site_settings(category: str) -> tuple[str, str]:
    return f"{PLATFORM}#site", category


def api_keys(tenant_id: str) -> str:
    return f"{tenant_id}#keys"


def api_key_lookup(prefix: str) -> tuple[str, str]:
    """Where the authorizer, which knows no tenant yet, finds whose key this is."""
    return f"{PLATFORM}#key#{prefix}", "key"


def agents(tenant_id: str) -> str:
    return f"{tenant_id}#agents"


def knowledge_bases(tenant_id: str) -> str:
    return f"{tenant_id}#kbs"


def audit(tenant_id: str | None) -> str:
    return f"{tenant_id or PLATFORM}#audit"


def usage(tenant_id: str) -> str:
    return f"{tenant_id}#usage"


def drift_cursor() -> tuple[str, str]:
    """How far the comparison of table and index has come."""
    return f"{PLATFORM}#drift", "cursor"


def answers(tenant_id: str) -> str:
    """Where the traces of stored answers lie that are about no person and no conversation."""
    return f"{tenant_id}#answers"


def operations(tenant_id: str | None) -> str:
    return f"{tenant_id or PLATFORM}#ops"


# conversations
def conversation(tenant_id: str, conversation_id: str) -> str:
    return f"{tenant_id}#c#{conversation_id}"


def extraction_lease(tenant_id: str, conversation_id: str) -> tuple[str, str]:
    return conversation(tenant_id, conversation_id), "lease#extract"


META = "meta"
MESSAGES, TURNS, FRAMES, COMPACTIONS, JOBS = "m#", "t#", "f#", "k#", "x#"


def conversations_of(tenant_id: str, owner_key: str) -> str:
    return f"{tenant_id}#cs#{owner_key}"


def conversations(tenant_id: str) -> str:
    return f"{tenant_id}#cs"


def extractions(tenant_id: str) -> str:
    return f"{tenant_id}#xs"


def extractions_of(tenant_id: str, owner_key: str) -> str:
    return f"{tenant_id}#xs#{owner_key}"


DUE_SHARDS = 8


def due(tenant_id: str) -> str:
    """The sparse list of conversations with something to extract, in a few partitions that the sweeper reads in turn."""
    return f"due#{int(hashlib.sha256(tenant_id.encode()).hexdigest(), 16) % DUE_SHARDS}"


# memory
ENTITIES, RELATIONS, NAMES, EDGES, HISTORY, EDGE_CLAIMS, EXCLUSIVE = "e#", "r#", "n#", "a#", "h#", "u#", "p#"


def memory(tenant_id: str, scope: str) -> str:
    return f"{tenant_id}#mem#{scope}"


def memories(tenant_id: str) -> str:
    return f"{tenant_id}#mems"


def by_id(tenant_id: str, id: str) -> str:
    return f"{tenant_id}#id#{id}"


def name_claim(entity_type: str, folded_name: str) -> str:
    return f"{NAMES}{entity_type}#{digest(folded_name)}"


def edge(entity_id: str, relation_id: str = "") -> str:
    return f"{EDGES}{entity_id}#{relation_id}"


def edge_claim(source: str, target: str, relation_type: str) -> str:
    return f"{EDGE_CLAIMS}{source}#{target}#{relation_type}"


def history(entity_id: str, version: int | None = None) -> str:
    return f"{HISTORY}{entity_id}#" + ("" if version is None else f"{version:08d}")


FORGOTTEN = "z#"


def forgotten(message_id: str) -> str:
    """That a memory which came from this message was deleted: the message itself is not recalled in its place."""
    return f"{FORGOTTEN}{message_id}"

"""The local stack's identity provider: one key, kept under the state directory, and tokens of dashboard users signed by it."""

import json
import os
import time
from pathlib import Path
from typing import Any, Literal

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from jwt.algorithms import ECAlgorithm

Role = Literal["admin", "member", "platform"]
LONG = 30 * 24 * 3600  # credentials.json is renewed on every start


def write_secret(path: Path, text: str) -> None:
    """Readable by its owner from the first byte on, and never half written."""
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    fresh.replace(path)


class Issuer:
    def __init__(self, key_file: Path, issuer: str, audience: str) -> None:
        if not key_file.exists():
            made = ec.generate_private_key(ec.SECP256R1())
            write_secret(key_file, made.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())
        key = load_pem_private_key(key_file.read_bytes(), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError(f"{key_file} holds no elliptic curve key")
        self._key = key
        self._issuer = issuer
        self._audience = audience
        public: dict[str, Any] = json.loads(ECAlgorithm.to_jwk(key.public_key()))
        self._kid = str(public["x"])[:16]
        self.jwks = {"keys": [public | {"kid": self._kid, "use": "sig", "alg": "ES256"}]}

    def token(self, subject: str, role: Role, tenant_id: str | None = None, expires_in: int = LONG) -> str:
        now = int(time.time())
        claims = {"iss": self._issuer, "aud": self._audience, "sub": subject, "role": role, "iat": now, "exp": now + expires_in}
        if tenant_id is not None:
            claims["tenant_id"] = tenant_id
        return jwt.encode(claims, self._key, algorithm="ES256", headers={"kid": self._kid})

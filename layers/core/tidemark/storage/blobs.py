"""Texts too large for an item, in the bucket."""

from functools import cached_property
from typing import TYPE_CHECKING

import boto3

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


class Blobs:
    """Stores and reads texts by key. Keys begin with tenant and conversation, so that one prefix erases all of either."""

    def __init__(self, bucket: str) -> None:
        self._bucket = bucket

    @cached_property
    def _client(self) -> "S3Client":
        return boto3.client("s3")

    def put(self, key: str, text: str, *, short_lived: bool = False) -> None:
        """Stores a text. What is short-lived carries the tag by which the bucket's lifecycle drops it after two days."""
        tags = {"Tagging": "lifetime=short"} if short_lived else {}
        self._client.put_object(Bucket=self._bucket, Key=key, Body=text.encode(), ContentType="application/json", **tags)  # type: ignore[arg-type]

    def get(self, key: str) -> str:
        return self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read().decode()

    def delete_prefix(self, prefix: str) -> int:
        """Deletes everything below a prefix; safe to repeat."""
        count = 0
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=prefix)
        for page in pages:
            keys = [{"Key": found["Key"]} for found in page.get("Contents", [])]
            if keys:
                self._client.delete_objects(Bucket=self._bucket, Delete={"Objects": keys, "Quiet": True})  # type: ignore[typeddict-item]
                count += len(keys)
        return count

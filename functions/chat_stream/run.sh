#!/bin/sh
# The Lambda Web Adapter starts this and sends requests on; the layers' packages lie under /opt/python.
export PYTHONPATH="/opt/python:${LAMBDA_TASK_ROOT:-.}:$PYTHONPATH"
exec python -m uvicorn --factory app:application --host 127.0.0.1 --port "${AWS_LWA_PORT:-8080}" --no-access-log --log-level warning

# The controllers of Hortus: small, not root, and content with a read-only root file system (/tmp is all it writes to).
#   docker build -t hortus .
ARG PYTHON=3.12
FROM python:${PYTHON}-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY locks/run.txt locks/run.txt
# Dependencies first: they change seldom, and this layer with them. Every file is checked against the lock's hash.
RUN python -m venv /opt/hortus \
 && /opt/hortus/bin/pip install --no-cache-dir --no-compile --require-hashes --no-deps -r locks/run.txt
COPY src src
COPY charts charts
RUN /opt/hortus/bin/pip install --no-cache-dir --no-compile --no-deps --no-build-isolation . \
 && /opt/hortus/bin/pip uninstall --yes hatchling editables pathspec pluggy trove-classifiers pip \
 && python -m compileall -q /opt/hortus/lib

FROM python:${PYTHON}-slim
COPY --from=build /opt/hortus /opt/hortus
ENV PATH=/opt/hortus/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["hortus"]
CMD ["run"]

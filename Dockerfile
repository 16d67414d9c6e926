# Hortus' controllers and dashboard: small, not root, and content with a read-only root file system (/tmp is all it writes to).
#   docker build -t hortus .
# The official image for all its platforms, by digest. Renew both: docker buildx imagetools inspect python:3.12-slim-bookworm
ARG BASE=python:3.12.14-slim-bookworm@sha256:782412e85d0f0984994c290652577d4018aff08145c85b262bb63dc0c7522254
FROM ${BASE} AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY locks/run.txt locks/run.txt
# Dependencies first: they change seldom, and this layer with them. Every file is checked against the lock's hash.
RUN python -m venv /opt/hortus \
 && /opt/hortus/bin/pip install --no-cache-dir --no-compile --require-hashes --no-deps -r locks/run.txt
COPY src/hortus src/hortus
COPY charts/hortus charts/hortus
RUN /opt/hortus/bin/pip install --no-cache-dir --no-compile --no-deps --no-build-isolation . \
 && /opt/hortus/bin/pip uninstall --yes hatchling editables pathspec pluggy trove-classifiers pip \
 && python -m compileall -q /opt/hortus/lib

FROM ${BASE}
COPY --from=build /opt/hortus /opt/hortus
ENV PATH=/opt/hortus/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
# Nothing is installed into a running image: pip stays with the first stage.
RUN python -m pip uninstall --yes --root-user-action=ignore pip \
 && rm -rf /usr/local/lib/python3.*/ensurepip
USER 65532:65532
EXPOSE 8080 8081
ENTRYPOINT ["hortus"]
CMD ["run"]

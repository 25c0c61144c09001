# dueline's command in a container. `docker compose up` uses it for the schedulers and workers.
#
# The first stage downloads every file of requirements.lock, each checked against its hash, builds the wheel, and
# installs it from these files alone; only the runtime packages among them reach the image.
FROM python:3.11-slim AS build
WORKDIR /src
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements.lock ./
RUN python -m pip download --quiet --require-hashes --requirement requirements.lock --dest /wheels
COPY . .
ENV PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels
RUN python -m pip wheel --quiet --no-deps --wheel-dir /wheels . \
 && python -m venv /opt/dueline \
 && /opt/dueline/bin/pip install --quiet dueline

FROM python:3.11-slim
RUN useradd --system --uid 10001 dueline && mkdir /run/dueline && chown dueline /run/dueline
COPY --from=build /opt/dueline /opt/dueline
# Handlers are looked up here; put yours beside the examples, or mount another folder and set PYTHONPATH to it.
COPY examples /app/examples
WORKDIR /app
ENV PATH=/opt/dueline/bin:$PATH PYTHONPATH=/app PYTHONUNBUFFERED=1 DUELINE_HEALTH_FILE=/run/dueline/health
USER dueline
ENTRYPOINT ["dueline"]
CMD ["--help"]

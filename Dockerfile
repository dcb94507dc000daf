# Two stages: build with everything, run with what the service needs. Images are pinned by digest before a release: `npm run pin-images`.
ARG NODE_IMAGE=node:24.21.0-bookworm-slim@sha256:d6aa754f16b3197301076f047b5def2f02ea1dbbc2ca920407d46d7ec7f87b20

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY . .
RUN npm ci && npm run build && npm prune --omit=dev && node scripts/shipped-packages.mjs
# Workspaces are links in node_modules, to folders of which only the compiled part is needed.
RUN mkdir /runtime \
  && cp -a --parents package.json LICENSE apps/api/prisma/migrations node_modules apps/*/package.json apps/cli/bin apps/*/dist libs/*/package.json libs/*/dist integrations/python /runtime \
  && for folder in apps/*/node_modules libs/*/node_modules; do [ ! -d "$folder" ] || cp -a --parents "$folder" /runtime; done \
  && find /runtime/apps /runtime/libs \( -name '*.d.ts' -o -name '*.d.mts' -o -name '*.tsbuildinfo' \) -not -path '*/node_modules/*' -delete

FROM ${NODE_IMAGE}
# For coding_env (docs/operations.md, "Isolation of programs").
RUN apt-get update \
  && apt-get install -y --no-install-recommends bubblewrap \
  && rm -rf /var/lib/apt/lists/* /usr/local/lib/node_modules /usr/local/bin/npm /usr/local/bin/npx /usr/local/bin/corepack /opt/yarn-* /usr/local/bin/yarn*
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 PALESTRA_DATA_DIR=/data
WORKDIR /app
# Owned by root: the service cannot change its own program.
COPY --from=build /runtime /app
RUN mkdir /data && chown node /data
USER node
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=5s --start-period=60s CMD ["node", "-e", "fetch('http://127.0.0.1:8080/health/ready').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=32", "apps/api/dist/main.js"]

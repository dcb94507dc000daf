# Two stages: build with everything, run with what the service needs.
FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY . .
RUN npm ci
# The image keeps what the service needs; the rest of it builds.
RUN npm run build && npm prune --omit=dev

FROM node:24-bookworm-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=8080 PALESTRA_DATA_DIR=/data
WORKDIR /app
COPY --from=build /app /app
RUN mkdir /data && chown node /data
USER node
VOLUME /data
EXPOSE 8080
HEALTHCHECK --interval=5s --start-period=60s CMD node -e "fetch('http://127.0.0.1:8080/health').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"
CMD ["node", "--max-semi-space-size=32", "apps/api/dist/main.js"]

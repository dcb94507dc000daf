import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createConnection } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '@palestra/hosting';

/** The directive that ingress-nginx writes for an annotation. */
const DIRECTIVES: Record<string, (value: string) => string> = {
  'proxy-buffering': (value) => `proxy_buffering ${value};`,
  'proxy-request-buffering': (value) => `proxy_request_buffering ${value};`,
  'proxy-read-timeout': (value) => `proxy_read_timeout ${value}s;`,
  'proxy-send-timeout': (value) => `proxy_send_timeout ${value}s;`,
  'proxy-body-size': (value) => `client_max_body_size ${value};`,
};
const PREFIX = 'nginx.ingress.kubernetes.io/';

/** What ingress-nginx does without annotations (its ConfigMap), except that 60 seconds are `defaultSeconds`. */
const defaults = (seconds: number): Record<string, string> => ({
  [`${PREFIX}proxy-buffering`]: 'off',
  [`${PREFIX}proxy-request-buffering`]: 'on',
  [`${PREFIX}proxy-read-timeout`]: String(seconds),
  [`${PREFIX}proxy-send-timeout`]: String(seconds),
  [`${PREFIX}proxy-body-size`]: '1m',
});

export interface Nginx {
  /** One for each Ingress. */
  urls: string[];
  close(): Promise<void>;
}

/** nginx in front of a service, with a server for each Ingress, as ingress-nginx configures it for these annotations. */
export async function startNginx(upstream: string, ingresses: Record<string, string>[], defaultSeconds: number): Promise<Nginx> {
  const folder = mkdtempSync(path.join(tmpdir(), 'palestra-nginx-'));
  const ports = await Promise.all(ingresses.map(() => freePort()));
  const servers = ingresses.map((annotations, index) => serverOf(ports[index]!, { ...defaults(defaultSeconds), ...annotations }));
  writeFileSync(path.join(folder, 'nginx.conf'), configOf(folder, new URL(upstream).host, servers));
  const child = spawn('/usr/sbin/nginx', ['-p', folder, '-c', 'nginx.conf', '-e', 'error.log'], { stdio: 'inherit' });
  const failed = once(child, 'error').then(([error]) => Promise.reject(error as Error));
  failed.catch(() => {});
  const close = async () => {
    await end(child);
    rmSync(folder, { recursive: true });
  };
  try {
    for (const port of ports) await Promise.race([listens(port, child, path.join(folder, 'error.log')), failed]);
  } catch (error) {
    await close();
    throw error;
  }
  return { urls: ports.map((port) => `http://127.0.0.1:${port}`), close };
}

/** From the template of ingress-nginx (rootfs/etc/nginx/template/nginx.tmpl), without what needs its Lua modules. */
function serverOf(port: number, annotations: Record<string, string>): string {
  const directives = Object.entries(annotations).map(([name, value]) => {
    const directive = DIRECTIVES[name.replace(PREFIX, '')];
    if (directive === undefined) throw new Error(`the test does not know what ingress-nginx does for ${name}`);
    return directive(value);
  });
  return `server {
    listen 127.0.0.1:${port};
    location / {
      ${directives.join('\n      ')}
      proxy_set_header Host $http_host;
      proxy_set_header Upgrade $http_upgrade;
      proxy_set_header Connection $connection_upgrade;
      proxy_set_header X-Real-IP $remote_addr;
      proxy_set_header X-Forwarded-For $remote_addr;
      proxy_set_header X-Forwarded-Host $http_host;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header Proxy "";
      proxy_connect_timeout 5s;
      proxy_buffer_size 4k;
      proxy_buffers 4 4k;
      proxy_max_temp_file_size 1024m;
      proxy_http_version 1.1;
      proxy_next_upstream error timeout;
      proxy_next_upstream_tries 3;
      proxy_pass http://palestra;
      proxy_redirect off;
    }
  }`;
}

const configOf = (folder: string, upstream: string, servers: string[]): string => `
daemon off;
pid ${folder}/nginx.pid;
worker_processes 1;
${process.getuid!() === 0 ? 'user root;' : ''}
events { worker_connections 512; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  keepalive_timeout 75s;
  map $http_upgrade $connection_upgrade { default upgrade; '' ''; }
  upstream palestra { server ${upstream}; keepalive 320; keepalive_timeout 60s; keepalive_requests 10000; }
  ${servers.join('\n  ')}
}
`;

async function listens(port: number, child: ChildProcess, log: string): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}:\n${readFileSync(log, 'utf8')}`);
    const is = await new Promise<boolean>((resolve) => {
      const socket = createConnection(port, '127.0.0.1');
      socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
      socket.on('connect', () => socket.destroy());
    });
    if (is) return;
    await sleep(20);
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  // SIGTERM ends its workers too, without waiting for connections.
  child.kill('SIGTERM');
  await ended;
}

// Runs in a container beside an instance, and is the only thing that the instance's network reaches. Two servers:
// - a relay: connections from outside reach the instance's port (a build has none);
// - a proxy (HTTP and CONNECT), if the instance may connect to other hosts: to public addresses only, or to the names of a list.
// Without imports of this repository, because the container gets only its text, after those of gateway-policy.mjs and gateway-tls.mjs.
// Settings: JSON in PALESTRA_GATEWAY.
/* global isPermitted, isSameName, matchesHost, serverName */
import { createHash, timingSafeEqual } from 'node:crypto';
import dns from 'node:dns';
import { rmSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';

/**
 * `hosts`: null for all. `refused`: addresses that are not reached although they are public. `reachable`: CIDRs that are reached although they
 * are not. `policy`: rules of a sandbox, in the place of `hosts`. `plain`: hosts that are reached at any address, but only by plain HTTP.
 * `host`: where the proxy listens; null: at all addresses.
 * @type {{
 *   relay: null | { listen: number, target: { host: string, port: number }, token: string },
 *   proxy: null | {
 *     host: null | string, port: number, hosts: null | string[], refused: string[], reachable: string[],
 *     policy: null | { rules: object[], enforce: boolean }, plain: string[],
 *   },
 *   lifetimeMs: null | number,
 * }}
 */
const settings = JSON.parse(process.env.PALESTRA_GATEWAY);
const CONNECT_MS = 10_000;
const IDLE_MS = 900_000;
const MOST_CONNECTIONS = 4_096;
const MOST_HEAD_BYTES = 65_536;
const MOST_HELLO_BYTES = 16_384;
const HTTPS_PORT = 443;
const CONTROL = '/tmp/control.sock';

/** Joins two sockets, so that the end or failure of one reaches the other. */
function join(one, other) {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ]) {
    from.setNoDelay(true);
    from.setTimeout(IDLE_MS, () => from.destroy());
    from.on('error', () => to.destroy());
    // Without an error what was received is still sent.
    from.on('close', (failed) => (failed ? to.destroy() : to.end()));
    from.pipe(to);
  }
}

/** The head of the first request of a connection has the token as the password of basic authentication. */
function isAdmitted(head, token) {
  const credentials = /\r\nauthorization: *basic ([\w+/=]*)/i.exec(head)?.[1] ?? '';
  const password = Buffer.from(credentials, 'base64').toString().split(':')[1] ?? '';
  const [given, wanted] = [password, token].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(given, wanted);
}

/** Reads until `isEnough`, or more than `most` bytes came, then calls `onRead` with them. Closes a connection that takes too long. */
function readFirst(client, head, most, isEnough, onRead) {
  let read = head;
  client.setTimeout(CONNECT_MS, () => client.destroy());
  client.on('error', () => client.destroy());
  const onData = (piece) => {
    read = Buffer.concat([read, piece]);
    if (!isEnough(read) && read.length <= most) return;
    client.pause().off('data', onData);
    client.removeAllListeners('timeout');
    onRead(read);
  };
  client.on('data', onData);
  if (head.length > 0) onData(Buffer.alloc(0));
}

/** Only the first request of a connection is read, so that the others cost nothing: a connection has one client, the service. */
function admit(client, token, onAdmitted) {
  const endOf = (read) => read.indexOf('\r\n\r\n');
  readFirst(
    client,
    Buffer.alloc(0),
    MOST_HEAD_BYTES,
    (read) => endOf(read) !== -1,
    (read) => {
      const end = endOf(read);
      if (end !== -1 && isAdmitted(read.subarray(0, end).toString('latin1'), token)) onAdmitted(read);
      else client.end('HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
    },
  );
}

function openRelay({ listen, target, token }) {
  const server = net.createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    admit(client, token, (first) => {
      const instance = net.connect({ ...target, allowHalfOpen: true, noDelay: true });
      instance.write(first);
      join(client, instance);
    });
  });
  server.maxConnections = MOST_CONNECTIONS;
  server.listen(listen, '0.0.0.0');
}

/** Addresses that are not on the Internet, and what the service names: its own machine. */
const notPublic = new net.BlockList();
for (const [network, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 3],
  // A metadata service with a public address.
  ['168.63.129.16', 32],
]) {
  notPublic.addSubnet(network, bits, 'ipv4');
}
/** Only 2000::/3 is on the Internet; of it not: Teredo, documentation, 6to4. */
const globalIpv6 = new net.BlockList();
globalIpv6.addSubnet('2000::', 3, 'ipv6');
for (const [network, bits] of [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
]) {
  notPublic.addSubnet(network, bits, 'ipv6');
}

const familyOf = (address) => (net.isIPv6(address) ? 'ipv6' : 'ipv4');
const exceptions = new net.BlockList();

function isPublic(address) {
  const family = familyOf(address);
  if (exceptions.check(address, family)) return true;
  if (notPublic.check(address, family)) return false;
  return family === 'ipv4' || globalIpv6.check(address, 'ipv6');
}

/** A lookup for connections: only the addresses that may be reached, checked after the name was resolved. */
function publicLookup(host, options, callback) {
  dns.lookup(host, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error);
    const open = addresses.filter(({ address }) => isPublic(address));
    if (open.length === 0) return callback(Object.assign(new Error(`${host} is not a public address`), { code: 'EACCES' }));
    return options.all ? callback(null, open) : callback(null, open[0].address, open[0].family);
  });
}

const isPlain = (host, proxy) => proxy.plain.some((one) => matchesHost(one, host));

/** Why the rules of a sandbox refuse a request; null if they allow it, or only report. `method` and `path`: null for a tunnel. */
function blocked(target, method, path, { policy }) {
  if (policy === null) return null;
  const passes = isPermitted(policy.rules, { host: target.host, method, path });
  const shown = JSON.stringify(`${method ?? 'CONNECT'} ${target.host}:${target.port}${path ?? ''}`.slice(0, 500));
  if (!passes || !policy.enforce) console.log(passes ? 'allow' : policy.enforce ? 'deny' : 'would deny', shown);
  return passes || !policy.enforce ? null : `blocked by sandbox network policy: ${shown}`;
}

/** `host:port` or `[address]:port`. */
function authority(text, defaultPort) {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^:/?#@]+))(?::(\d{1,5}))?$/i.exec(text);
  return match ? { host: match[1] ?? match[2], port: Number(match[3] ?? defaultPort) } : null;
}

/**
 * Whether the name in a tunnel must be that of the tunnel: servers of one address answer for many names. An address has no name, and is itself
 * what the rules allow.
 */
const isNamed = (target, { hosts, policy }) => (hosts !== null || policy?.enforce === true) && net.isIP(target.host) === 0;

/** Why a connection is refused; null if it is allowed. An address in the place of a name is not resolved, so it is checked here. */
function refusal(target, method, path, proxy) {
  if (target === null || target.port < 1 || target.port > 65_535) return 'the address cannot be read';
  if (proxy.hosts !== null && !proxy.hosts.some((rule) => matchesHost(rule, target.host)))
    return `${target.host} is not one of the hosts that this environment may reach`;
  const why = blocked(target, method, path, proxy);
  if (why !== null) return why;
  if (isPlain(target.host, proxy)) return method === null ? `${target.host} is reached by plain HTTP only` : null;
  if (method === null && isNamed(target, proxy) && target.port !== HTTPS_PORT)
    return `CONNECT reaches only port ${HTTPS_PORT} of hosts that rules allow. Use https://, or http:// without a tunnel`;
  if (net.isIP(target.host) && !isPublic(target.host)) return `${target.host} is not a public address`;
  return null;
}

/** Calls `onSame` with the first bytes of a TLS client that names the host of its tunnel; closes the tunnel of others. */
function checkName(client, upstream, head, target, onSame) {
  const close = () => {
    client.destroy();
    upstream.destroy();
  };
  client.on('end', close).on('close', close);
  upstream.on('error', close);
  readFirst(
    client,
    head,
    MOST_HELLO_BYTES,
    (read) => serverName(read) !== undefined,
    (read) => {
      const name = serverName(read) ?? null;
      client.off('end', close).off('close', close);
      if (name !== null && isSameName(name, target.host)) return onSame(read);
      console.log('deny', JSON.stringify(`TLS to ${name} in CONNECT ${target.host}:${target.port}`.slice(0, 500)));
      return close();
    },
  );
}

function openProxy(proxy) {
  for (const address of proxy.refused) notPublic.addAddress(address, familyOf(address));
  for (const cidr of proxy.reachable) {
    const [network, bits] = cidr.split('/');
    exceptions.addSubnet(network, Number(bits ?? (net.isIPv6(network) ? 128 : 32)), familyOf(network));
  }
  const server = http.createServer({ maxHeaderSize: 32_768 }, (request, response) => {
    const url = URL.canParse(request.url) ? new URL(request.url) : null;
    const target = url?.protocol === 'http:' ? authority(url.host, 80) : null;
    const why = refusal(target, request.method, url?.pathname ?? '', proxy);
    if (why !== null) return response.writeHead(403, { 'content-type': 'text/plain' }).end(`Palestra: ${why}\n`);
    // The rules are for the host of the address, so the server gets no other name.
    const headers = { ...request.headers, host: url.host };
    for (const name of ['proxy-connection', 'proxy-authorization', 'connection', 'keep-alive', 'te', 'upgrade']) delete headers[name];
    const lookup = isPlain(target.host, proxy) ? dns.lookup : publicLookup;
    const outgoing = http.request(
      { ...target, method: request.method, path: url.pathname + url.search, headers, lookup, agent: false, timeout: IDLE_MS },
      (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      },
    );
    outgoing.on('timeout', () => outgoing.destroy());
    outgoing.on('error', (error) => {
      if (response.headersSent) return response.destroy();
      return response.writeHead(502, { 'content-type': 'text/plain' }).end(`Palestra: ${error.message}\n`);
    });
    response.on('close', () => outgoing.destroy());
    request.pipe(outgoing);
  });
  server.on('connect', (request, client, head) => {
    client.on('error', () => {});
    const target = authority(request.url, 443);
    const why = refusal(target, null, null, proxy);
    const refuse = (status, text) =>
      client.end(`HTTP/1.1 ${status}\r\ncontent-type: text/plain\r\nconnection: close\r\n\r\nPalestra: ${text}\n`);
    if (why !== null) return refuse('403 Forbidden', why);
    const upstream = net.connect({ ...target, lookup: publicLookup, noDelay: true });
    const tooLate = setTimeout(() => upstream.destroy(new Error('no connection in time')), CONNECT_MS);
    const failed = (error) => {
      clearTimeout(tooLate);
      refuse('502 Bad Gateway', error.message);
    };
    upstream.once('error', failed);
    upstream.once('connect', () => {
      clearTimeout(tooLate);
      upstream.off('error', failed);
      client.write('HTTP/1.1 200 Connection established\r\n\r\n');
      const forward = (first) => {
        if (first.length > 0) upstream.write(first);
        join(client, upstream);
      };
      if (isNamed(target, proxy)) checkName(client, upstream, head, target, forward);
      else forward(head);
    });
  });
  server.on('clientError', (_, socket) => socket.destroy());
  const clients = new Set();
  server.on('connection', (socket) => {
    clients.add(socket);
    socket.on('close', () => clients.delete(socket));
  });
  server.maxConnections = MOST_CONNECTIONS;
  server.listen({ port: proxy.port, host: proxy.host ?? undefined }, () => openControl(proxy, clients));
}

/** Takes other rules from a process in this container: JSON with `hosts` and `policy`. Answers when no connection of the old ones is open. */
function openControl(proxy, clients) {
  rmSync(CONTROL, { force: true });
  net
    .createServer({ allowHalfOpen: true }, (control) => {
      let text = '';
      control.on('error', () => {});
      control.setEncoding('utf8').on('data', (piece) => (text += piece));
      control.on('end', () => {
        Object.assign(proxy, JSON.parse(text));
        for (const client of clients) client.destroy();
        control.end('applied');
      });
    })
    .listen(CONTROL);
}
if (settings.relay !== null) openRelay(settings.relay);
if (settings.proxy !== null) openProxy(settings.proxy);
if (settings.lifetimeMs !== null) setTimeout(() => process.exit(0), settings.lifetimeMs);

// It has no state: open connections end with the instance.
process.on('SIGTERM', () => process.exit(0));

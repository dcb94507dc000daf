import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/**
 * The API key that a request carries: `X-API-Key`; `Authorization: Bearer`; or `Authorization: Basic`, where the password is the key, because clients
 * that take nothing but a URL send its userinfo so (openenv-wire.md 2.2). null when there is none.
 */
export function keyOf(headers: IncomingHttpHeaders): string | null {
  const own = headers['x-api-key'];
  if (typeof own === 'string' && own.trim() !== '') return own.trim();
  const [scheme, value] = splitOnce(headers.authorization?.trim() ?? '', /\s+/);
  if (value === '') return null;
  switch (scheme.toLowerCase()) {
    case 'bearer':
      return value;
    case 'basic': {
      const [user, password] = splitOnce(Buffer.from(value, 'base64').toString('utf8'), /:/);
      return password || user || null;
    }
    default:
      return null;
  }
}

const PATH_KEY = /^\/k\/([^/?]+)(?=[/?]|$)/;

/**
 * Takes a key out of the path, for clients that can put one nowhere else: `/k/{key}/openenv/acme/echo/ws` becomes
 * `/openenv/acme/echo/ws` with the key as a header. To be called before anything logs the URL.
 */
export function takePathKey(request: IncomingMessage): string {
  // `POST //ping` is what the SDK makes of a session URL with a trailing slash; inner double slashes have a meaning.
  const url = (request.url ?? '/').replace(/^\/{2,}/, '/');
  const match = PATH_KEY.exec(url);
  if (match === null) return url;
  try {
    request.headers['x-api-key'] = decodeURIComponent(match[1]!);
  } catch {
    request.headers['x-api-key'] = match[1]!;
  }
  const rest = url.slice(match[0].length);
  return rest.startsWith('/') ? rest : `/${rest}`;
}

function splitOnce(text: string, at: RegExp): [string, string] {
  const match = at.exec(text);
  return match === null ? [text, ''] : [text.slice(0, match.index), text.slice(match.index + match[0].length)];
}

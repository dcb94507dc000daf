import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';

/**
 * The API key of a request: `X-API-Key`; `Authorization: Bearer`; or `Authorization: Basic`, where the password is the key, because clients
 * that accept only a URL send its user information this way (docs/reference/openenv.md#credentials). null when there is none.
 */
export function keyOf(headers: IncomingHttpHeaders): string | null {
  const header = headers['x-api-key'];
  if (typeof header === 'string' && header.trim() !== '') return header.trim();
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
 * Moves a key from the path to a header, for clients that can send no header: `/k/{key}/openenv/acme/echo/ws` becomes
 * `/openenv/acme/echo/ws`. Call it before anything logs the URL.
 */
export function takePathKey(request: IncomingMessage): string {
  // The SDK sends `POST //ping` if its session URL ends with a slash (docs/reference/ors.md#addresses). Inner double slashes have a
  // meaning.
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

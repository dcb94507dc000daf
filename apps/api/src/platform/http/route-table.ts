/** All routes of the server, so that a wrong method on a known path is 405 instead of 404. */
export class RouteTable {
  readonly #routes: { method: string; url: string; segments: string[] }[] = [];

  add(method: string, url: string): void {
    this.#routes.push({ method, url, segments: url.split('/') });
  }

  list(): readonly { method: string; url: string }[] {
    return this.#routes;
  }

  /** Whether the path of this URL has a route with any method. Catch-all routes (`/*`) do not count. */
  knowsPath(url: string): boolean {
    const segments = (url.split('?')[0] ?? '').split('/');
    return this.#routes.some(({ segments: pattern }) => matches(pattern, segments));
  }
}

function matches(pattern: string[], segments: string[]): boolean {
  const wildcard = pattern.at(-1) === '*';
  if (wildcard ? segments.length < pattern.length || pattern.length <= 2 : segments.length !== pattern.length) return false;
  return pattern.every((part, index) => part === '*' || part === segments[index] || (part.startsWith(':') && segments[index] !== ''));
}

/** A path of this origin with at most a simple query. Browsers read `//host` and `/\\host` as another origin. */
const PATH = /^\/(?![/\\])[\w\-./~%]{0,500}(?:\?[\w\-.~%=&]{0,500})?$/;

/** Where a browser goes after it has signed in: the path in the link, or `/` for anything that is not a path of this origin. */
export const nextPath = (next: unknown): string => (typeof next === 'string' && PATH.test(next) && !next.includes('//') ? next : '/');

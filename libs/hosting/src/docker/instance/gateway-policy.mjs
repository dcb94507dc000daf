// Decides what a sandbox may request. The text of this file precedes that of the gateway's program: no imports, and exports only for tests.

/** `*.example.org` matches subdomains, not `example.org`. */
export function matchesHost(rule, host) {
  const name = host.toLowerCase().replace(/\.$/, '');
  const wanted = rule.toLowerCase();
  return wanted.startsWith('*.') ? name.endsWith(wanted.slice(1)) && name.length > wanted.length - 1 : name === wanted;
}

/** The decoded path of a request; null for one that servers may read in several ways. */
export function readPath(raw) {
  if (raw.includes(';')) return null;
  let path;
  try {
    path = decodeURIComponent(raw);
  } catch {
    return null;
  }
  const isPlain = path.startsWith('/') && !path.includes('//') && !path.includes('\\') && !path.includes('\0');
  return isPlain && !path.split('/').some((part) => part === '.' || part === '..') ? path : null;
}

/** Whether a pattern, in which `*` stands for any characters, matches the whole text. Takes linear time for each `*`. */
export function matchesGlob(pattern, text) {
  const parts = pattern.split('*');
  const first = parts[0];
  if (parts.length === 1) return text === pattern;
  const last = parts[parts.length - 1];
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last)) return false;
  let at = first.length;
  const end = text.length - last.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at);
    if (found === -1 || found + part.length > end) return false;
    at = found + part.length;
  }
  return true;
}

/** Registries serve one package under several spellings: a rule that denies one denies all. `!` is Go's mark of a capital letter. */
const folded = (path) =>
  path
    .toLowerCase()
    .replaceAll('!', '')
    .replaceAll(/[-_.]+/g, '-');

/**
 * Whether a request passes: the first rule that matches decides, and without one it does not pass. `path` and `method`: null for a tunnel
 * (HTTPS), in which they cannot be seen; a rule on them then denies the host.
 */
export function isPermitted(rules, { host, method, path }) {
  const isTunnel = method === null;
  const decoded = isTunnel ? '' : readPath(path);
  if (decoded === null) return false;
  for (const rule of rules) {
    if (!matchesHost(rule.host, host)) continue;
    if (isTunnel) return rule.action === 'allow' && rule.path === null && rule.methods === null;
    if (rule.methods !== null && !rule.methods.includes(method)) continue;
    const isDenial = rule.action === 'deny';
    if (rule.path === null || matchesGlob(isDenial ? folded(rule.path) : rule.path, isDenial ? folded(decoded) : decoded)) return !isDenial;
  }
  return false;
}

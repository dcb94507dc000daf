// SPDX licences of packages, and the list of those that may be shipped.

/** Permissive licences; MPL-2.0 for unmodified packages; fonts under the OFL. */
const ALLOWED = new Set([
  '0BSD',
  'Apache-2.0',
  'BlueOak-1.0.0',
  'BSD-2-Clause',
  'BSD-3-Clause',
  'CC0-1.0',
  'ISC',
  'MIT',
  'MPL-2.0',
  'OFL-1.1',
  'PostgreSQL',
  'Python-2.0',
  'Unlicense',
  'Zlib',
]);
/** Packages whose package.json has no licence, with the place of their licence. */
const STATED_ELSEWHERE = { buildcheck: 'MIT', 'cpu-features': 'MIT', jstat: 'MIT', ssh2: 'MIT' };

/** The SPDX expression of a CycloneDX component; null if it has none. Private packages belong to this project. */
export function licenceOf({ name, licenses = [], properties = [] }) {
  if (properties.some((property) => property.name === 'cdx:npm:package:private' && property.value === 'true')) return 'Apache-2.0';
  const found = licenses.map(({ license, expression }) => expression ?? license?.id ?? license?.name);
  return found.length > 0 ? found.join(' AND ') : (STATED_ELSEWHERE[name] ?? null);
}

/** Whether an SPDX expression allows a choice of permitted licences only. Unknown syntax is refused. */
export function isAllowed(expression) {
  const tokens = expression.match(/\(|\)|[^\s()]+/g) ?? [];
  let at = 0;
  const primary = () => {
    if (tokens[at] !== '(') return ALLOWED.has(tokens[at++]);
    at += 1;
    const inside = any();
    return tokens[at++] === ')' && inside;
  };
  const all = () => {
    let allowed = primary();
    for (; tokens[at] === 'AND';) {
      at += 1;
      allowed = primary() && allowed;
    }
    return allowed;
  };
  const any = () => {
    let allowed = all();
    for (; tokens[at] === 'OR';) {
      at += 1;
      allowed = all() || allowed;
    }
    return allowed;
  };
  const allowed = any();
  return at === tokens.length && allowed;
}

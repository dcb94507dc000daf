/** Where packages come from, and how they are reached. Not all of a program: some hold tokens, or name files that do. */
const INHERITED = new RegExp(
  `^(?:${[
    'PATH|LANG|LC_ALL|TZ|(?:https?|no|all)_proxy',
    'SSL_CERT_FILE|SSL_CERT_DIR|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE',
    'PIP_(?:INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|TRUSTED_HOST|CERT|CONSTRAINT|DEFAULT_TIMEOUT|TIMEOUT|RETRIES|NO_BINARY|ONLY_BINARY|PREFER_BINARY)',
    'UV_(?:INDEX|DEFAULT_INDEX|INDEX_URL|EXTRA_INDEX_URL|INDEX_STRATEGY|FIND_LINKS|NO_INDEX|INSECURE_HOST|NATIVE_TLS|SYSTEM_CERTS|CONSTRAINT|HTTP_TIMEOUT|HTTP_RETRIES|OFFLINE)',
    'UV_(?:PYTHON_INSTALL_MIRROR|PYTHON_DOWNLOADS|PYTHON_PREFERENCE|LINK_MODE|CONCURRENT_DOWNLOADS|CONCURRENT_BUILDS|CONCURRENT_INSTALLS)',
    'NPM_CONFIG_(?:REGISTRY|CAFILE|STRICT_SSL|PROXY|HTTPS_PROXY|NOPROXY|MAXSOCKETS|OFFLINE|PREFER_OFFLINE|FETCH_\\w+)',
  ].join('|')})$`,
  'i',
);
/** Their values are URLs, or words between spaces of which each is one. */
const URLS = /(?:INDEX_URL|REGISTRY|(?<!NO_?)PROXY)$/i;
/** In other values: what a word begins with, then a user name and password. A path has none. */
const BEGINNING = /^(?!(?:[\w.-]+=)?(?:file:\/\/|[/.~]))((?:[\w.-]+=)?(?:[a-z][a-z\d+.-]*:\/\/)?).*@/i;

/**
 * Variables of this process that builds of authors get: never credentials. `cut`: names of those from which a user name, a password or a query
 * was removed, or that are left out because they may have one.
 */
export function inheritedVariables(environment: NodeJS.ProcessEnv): { variables: Record<string, string>; cut: string[] } {
  const variables: Record<string, string> = {};
  const cut: string[] = [];
  for (const [name, value] of Object.entries(environment)) {
    if (value === undefined || !INHERITED.test(name)) continue;
    const safe = name === 'PATH' ? value : URLS.test(name) ? withoutCredentials(value) : withoutBeginnings(value);
    if (safe !== null) variables[name] = safe;
    if (safe !== value) cut.push(name);
  }
  return { variables, cut };
}

/** Null when the value has an `@` of which it is not certain that it ends a password. */
function withoutCredentials(value: string): string | null {
  const words = value.split(/(?<=\s)|(?=\s)/).map((word) => (word.trim() === '' ? word : plainUrl(word)));
  if (!words.includes(null)) return words.join('');
  return value.includes('@') ? null : value;
}

/** Null for what is no URL, and for one with an `@` behind its host: a password may have a slash. */
function plainUrl(word: string): string | null {
  const hasScheme = word.includes('://');
  const text = hasScheme ? word : `http://${word}`;
  if (!URL.canParse(text)) return null;
  const { protocol, host, pathname, search, hash } = new URL(text);
  if (`${pathname}${search}${hash}`.includes('@')) return null;
  if (!/[@?#]/.test(word)) return word;
  return `${hasScheme ? `${protocol}//` : ''}${host}${pathname === '/' ? '' : pathname}`;
}

const withoutBeginnings = (value: string): string =>
  value
    .split(/(\s+|,(?=[a-z][a-z\d+.-]*:\/\/))/i)
    .map((word) => word.replace(BEGINNING, '$1').replace(/\?.*$/, ''))
    .join('');

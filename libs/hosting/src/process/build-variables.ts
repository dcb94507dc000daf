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
/** A user name and password at the beginning of a URL, also of one without a scheme; then what follows a question mark. */
const CREDENTIALS = /(^|:\/\/|[\s,=])[^\s,=/]*@|\?[^\s,]*/g;

/**
 * Variables of this process that builds of authors get: never credentials. `cut`: names of those from which a user name, a password or a query
 * was removed.
 */
export function inheritedVariables(environment: NodeJS.ProcessEnv): { variables: Record<string, string>; cut: string[] } {
  const variables: Record<string, string> = {};
  const cut: string[] = [];
  for (const [name, value] of Object.entries(environment)) {
    if (value === undefined || !INHERITED.test(name)) continue;
    variables[name] = name === 'PATH' ? value : value.replaceAll(CREDENTIALS, '$1');
    if (variables[name] !== value) cut.push(name);
  }
  return { variables, cut };
}

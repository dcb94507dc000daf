/** Moves credentials from the URL into a header, because `fetch` refuses URLs with credentials. */
export function splitCredentials(url: string): { url: string; headers: Record<string, string> } {
  const parsed = new URL(url);
  const { username, password } = parsed;
  if (username === '' && password === '') return { url, headers: {} };
  parsed.username = '';
  parsed.password = '';
  const credentials = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64');
  return { url: parsed.href, headers: { authorization: `Basic ${credentials}` } };
}

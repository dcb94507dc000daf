/** Whether only this machine reaches an address. A name other than `localhost` may resolve to any address. */
const isLoopback = (host: string): boolean =>
  host === 'localhost' || host.endsWith('.localhost') || host === '::1' || host === '[::1]' || /^127(?:\.\d{1,3}){3}$/.test(host);

/** Whether other machines reach the service: it listens beyond loopback, or its public URL is on another host, as behind a local proxy. */
export function isExposed(host: string, publicUrl: string | undefined): boolean {
  return !isLoopback(host) || (publicUrl !== undefined && !isLoopback(new URL(publicUrl).hostname));
}

const MIN_CHARACTERS = 32;
const MIN_DISTINCT = 10;
/** Words in the keys of examples and templates. */
const SAMPLE = /change.?me|replace.?me|example|placeholder|your.?(?:api.?)?key|test.?key|sample|password|secret.?key|dummy|deadbeef/i;
const REPETITION = /^(?:or_)?(.{1,16}?)\1+(?:.{0,15})$/;
const SEQUENCE = /0123456789|abcdefghij/i;

/** Why a key that an operator chose does not protect an exposed service, and what to do; null when it does. */
export function keyWeakness(key: string): string | null {
  const advice = 'because other machines reach this service. Create one: openssl rand -base64 32';
  if (key.length < MIN_CHARACTERS) return `expected at least ${MIN_CHARACTERS} characters ${advice}`;
  if (SAMPLE.test(key) || SEQUENCE.test(key) || REPETITION.test(key) || new Set(key).size < MIN_DISTINCT)
    return `expected random characters, not a sample or a pattern, ${advice}`;
  return null;
}

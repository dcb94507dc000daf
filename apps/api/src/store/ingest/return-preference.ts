/** The `return` preference of a Prefer header (RFC 7240), which may have several preferences; null without one. */
export function returnPreference(header: string | undefined): 'minimal' | 'representation' | null {
  for (const preference of (header ?? '').split(',')) {
    const [name, value] = preference
      .split(';', 1)[0]!
      .split('=')
      .map((part) => part.trim().toLowerCase().replaceAll('"', ''));
    if (name === 'return' && (value === 'minimal' || value === 'representation')) return value;
  }
  return null;
}

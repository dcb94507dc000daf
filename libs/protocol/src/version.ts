/** The version of all Palestra packages. `npm version` writes it (scripts/version.mjs). */
export const VERSION = '0.1.0';

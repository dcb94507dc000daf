import { VERSION } from './version.ts';

/**
 * The `version` of `/version`: the version of the reference implementation (PyPI `openreward`) whose behaviour a server has, then our version
 * as a local version label (PEP 440). The official clients pass it on to their callers and do not interpret it.
 */
export const ORS_VERSION = `0.1.167+palestra.${VERSION}`;

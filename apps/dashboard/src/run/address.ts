/**
 * A run in an address is its name, but for `.` and `..`: browsers take these for a way through folders, escaped or not. They are written `~.` and
 * `~..`, and what could be mistaken for that gets another `~`.
 */
export const segmentOfRun = (name: string): string => (/^~*\.{1,2}$/.test(name) ? `~${name}` : name);
export const runOfSegment = (segment: string): string => (/^~+\.{1,2}$/.test(segment) ? segment.slice(1) : segment);

/** The address of a page of a run, for what is no link of the router. */
export const runPath = (org: string, name: string): string => `/${encodeURIComponent(org)}/runs/${encodeURIComponent(segmentOfRun(name))}`;

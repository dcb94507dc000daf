/**
 * The path segment of a run is its name, except for `.` and `..`, which browsers resolve as relative paths even when escaped. They become `~.`
 * and `~..`; names that already look like this get another `~`.
 */
export const segmentOfRun = (name: string): string => (/^~*\.{1,2}$/.test(name) ? `~${name}` : name);
export const runOfSegment = (segment: string): string => (/^~+\.{1,2}$/.test(segment) ? segment.slice(1) : segment);

/** The address of a run page, for links outside of the router. */
export const runPath = (org: string, name: string): string => `/${encodeURIComponent(org)}/runs/${encodeURIComponent(segmentOfRun(name))}`;

/** The reference to a run in the address of a comparison: its id if the name has what separates the runs, a comma or spaces around it. */
export const refOf = ({ id, name }: { id: string; name: string }): string => (name.includes(',') || name !== name.trim() ? id : name);

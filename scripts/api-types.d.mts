export function renderApiTypes(document: unknown): Promise<string>;

/** A join by a key with one index probe per row. PostgreSQL would replace a plain join by a scan of the whole table for every page of a small store, and go on with it. */
export const probe = (table: string, on: string, alias: string): string =>
  `JOIN LATERAL (SELECT * FROM ${table} WHERE ${on} OFFSET 0) ${alias} ON true`;

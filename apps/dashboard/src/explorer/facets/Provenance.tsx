import { PROVENANCE_FIELDS, type ProvenanceField, PROVENANCES } from '@palestra/protocol';
import { type FacetContext, useFacets } from './facet-counts.ts';
import { Row } from './FacetRow.tsx';
import { choicesOf, choose } from '../query/query-edit.ts';

/** Provenance of each field. Closed unless the query uses it. */
export function ProvenanceFacet(context: FacetContext) {
  const used = context.query.clauses.some((clause) => clause.kind === 'field' && clause.key.startsWith('prov.'));
  return (
    <details className="flex-none px-3 pt-3" open={used || undefined}>
      <summary className="label cursor-pointer strong">Provenance</summary>
      {PROVENANCE_FIELDS.map((field) => (
        <Field key={field} field={field} {...context} />
      ))}
    </details>
  );
}

function Field({ field, ...context }: FacetContext & { field: ProvenanceField }) {
  const { query, onQuery } = context;
  const key = `prov.${field}` as const;
  const facets = useFacets(context, key);
  const counts = facets?.provenance[field];
  const choices = choicesOf(query, key);
  const shown = PROVENANCES.filter((value) => (counts?.[value] ?? 0) > 0 || choices.has(value));
  return (
    <div role="group" aria-label={`Provenance of ${field}`} className="pt-1">
      <h3 className="label first-letter:uppercase">{field}</h3>
      {shown.map((value) => (
        <Row
          key={value}
          name={value}
          title={`${key}:${value}`}
          count={counts?.[value] ?? 0}
          more={facets?.total_is === 'at_least'}
          choice={choices.get(value) ?? null}
          onChoose={(choice) => onQuery(choose(query, key, value, choice))}
        />
      ))}
    </div>
  );
}

import { z } from 'zod';
import { VERDICTS } from '../vocabularies.ts';

export const annotationBodySchema = z
  .object({
    rollout: z.uuid(),
    from_index: z
      .number()
      .int()
      .min(0)
      .max(2_147_483_647)
      .nullable()
      .default(null)
      .describe('Index of the first annotated message; null: the whole rollout.'),
    to_index: z
      .number()
      .int()
      .min(0)
      .max(2_147_483_647)
      .nullable()
      .default(null)
      .describe('Index of the last annotated message; null: the first one only.'),
    verdict: z.enum(VERDICTS).nullable().default(null),
    score: z.number().min(1).max(5).nullable().default(null),
    tag: z.string().trim().min(1).max(100).nullable().default(null),
    note: z.string().trim().min(1).max(10_000).nullable().default(null),
  })
  .refine(
    (body) => [body.verdict, body.score, body.tag, body.note].some((value) => value !== null),
    'expected a verdict, score, tag or note',
  )
  .refine(({ from_index, to_index }) => to_index === null || (from_index !== null && from_index <= to_index), {
    message: 'expected from_index <= to_index',
    path: ['to_index'],
  });
export type AnnotationBody = z.infer<typeof annotationBodySchema>;

export const annotationSchema = z.object({
  id: z.string(),
  rollout: z.string(),
  from_index: z.number().nullable(),
  to_index: z.number().nullable(),
  verdict: z
    .string()
    .nullable()
    .describe(`${VERDICTS.join(', ')}; of a review: a label of its queue, or chosen, rejected, tied.`),
  score: z.number().nullable(),
  tag: z.string().nullable(),
  note: z.string().nullable(),
  author: z.string().describe('Name of the author.'),
  queue: z.object({ id: z.string(), name: z.string() }).nullable().describe('The review queue whose answer it is.'),
  created_at: z.string(),
});

/** Maximum of rollouts that one request chooses by id or changes by a query. */
export const MAX_CHOSEN_ROLLOUTS = 1_000;
/** Ids of chosen rollouts. */
export const chosenRolloutsSchema = z.array(z.uuid()).min(1).max(MAX_CHOSEN_ROLLOUTS);
/** The position of a rollout in the order of arrival. */
export const arrivalSchema = z
  .string()
  .regex(/^\d{1,18}$/)
  .describe('Position in the order of arrival; later rollouts are not included');

/** One verdict or tag for many rollouts of a run: those in `rollouts`, or a page of those that match `query`. */
export const bulkAnnotationBodySchema = z
  .object({
    verdict: z.enum(VERDICTS).nullable().default(null),
    tag: z.string().trim().min(1).max(100).nullable().default(null),
    rollouts: chosenRolloutsSchema.optional(),
    query: z.string().max(2_000).optional().describe('The query language of the Explorer; empty = every rollout of the run'),
    as_of: arrivalSchema.optional(),
    limit: z.int().min(1).max(MAX_CHOSEN_ROLLOUTS).default(MAX_CHOSEN_ROLLOUTS).describe('Maximum of rollouts that the request changes'),
    cursor: z.string().max(400).optional().describe('`next` of the previous response'),
  })
  .refine(({ verdict, tag }) => (verdict === null) !== (tag === null), 'expected either a verdict or a tag')
  .refine(({ rollouts, query }) => (rollouts === undefined) !== (query === undefined), 'expected either rollouts or a query')
  .refine(({ query, as_of }) => (query === undefined) === (as_of === undefined), {
    message: 'expected as_of with a query, from the count of the same query',
    path: ['as_of'],
  });
export type BulkAnnotationBody = z.infer<typeof bulkAnnotationBodySchema>;
export type NewBulkAnnotation = z.input<typeof bulkAnnotationBodySchema>;

export const bulkAnnotationSchema = z.object({
  annotated: z.number().describe('Rollouts with a new annotation'),
  unchanged: z.number().describe('Rollouts that had the tag, or whose latest verdict of the author was the same'),
  not_found: z.number().describe('Rollouts that are not in the run, or that were erased meanwhile'),
  next: z
    .string()
    .nullable()
    .describe(
      'Cursor of the next page of the query; null at the end of the query. A page that annotates nothing can be followed by others',
    ),
});
export type BulkAnnotation = z.infer<typeof bulkAnnotationSchema>;

export const annotationQuerySchema = z.object({
  rollout: z.uuid().optional(),
  run: z.string().max(2_000).optional().describe('Id or name.'),
  tag: z.string().max(100).optional(),
  limit: z.coerce.number().int().min(1).max(1_000).default(200),
  cursor: z.string().max(400).optional(),
});
export type AnnotationQuery = z.infer<typeof annotationQuerySchema>;
export const annotationListSchema = z.object({ annotations: z.array(annotationSchema), next: z.string().nullable() });
export type Annotation = z.infer<typeof annotationSchema>;
export type AnnotationList = z.infer<typeof annotationListSchema>;
/** As a client sends it. */
export type NewAnnotation = z.input<typeof annotationBodySchema>;

export const savedViewBodySchema = z.object({
  run: z.string().max(2_000).nullable().default(null).describe('Id or name; null: for every run.'),
  name: z.string().trim().min(1).max(200),
  query: z.string().max(2_000).default(''),
  lens: z.string().max(20).nullable().default(null),
  state: z.record(z.string(), z.unknown()).default({}).describe('Columns, sort order and other settings of the page; at most 16 kB.'),
});
export type SavedViewBody = z.infer<typeof savedViewBodySchema>;
export const savedViewSchema = z.object({
  id: z.string(),
  run: z.string().nullable(),
  name: z.string(),
  query: z.string().describe('In its canonical spelling.'),
  lens: z.string().nullable(),
  state: z.record(z.string(), z.unknown()),
  author: z.string(),
  created_at: z.string(),
});
export const savedViewQuerySchema = z.object({
  run: z.string().max(2_000).optional().describe('Id or name. Views for every run are always included.'),
});
export const savedViewListSchema = z.object({ views: z.array(savedViewSchema) });
export type SavedView = z.infer<typeof savedViewSchema>;
export type SavedViewList = z.infer<typeof savedViewListSchema>;
/** As a client sends it. */
export type NewSavedView = z.input<typeof savedViewBodySchema>;

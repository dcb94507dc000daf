import { z } from 'zod';
import { PAIR_CHOICES, REVIEW_MODES } from '../vocabularies.ts';

/** Printable, because labels are written in queries (`verdict:`). */
const label = z
  .string()
  .trim()
  .min(1)
  .max(40)
  .regex(/^[^\p{C}]+$/u, { error: 'must not contain control characters' });

export const createReviewQueueSchema = z
  .strictObject({
    name: z.string().trim().min(1).max(200),
    run: z.string().min(1).max(10_240).optional().describe('Name or id; absent = all runs'),
    query: z.string().max(4_000).default('').describe('The query language of the Explorer, without regexes; empty = everything'),
    mode: z.enum(REVIEW_MODES).default('labels').describe('pairs: which of two rollouts of one group is better'),
    sample: z.int().min(1).max(10_000).default(50).describe('Maximum number of items. Pairs: at most one of each group.'),
    seed: z.int().min(0).max(2_147_483_647).default(0).describe('The same seed, query and rollouts give the same items in the same order.'),
    labels: z
      .array(label)
      .min(2)
      .max(9)
      .refine((labels) => new Set(labels).size === labels.length, { error: 'labels must differ' })
      .default(['good', 'bad', 'exploit'])
      .describe('Of the keys 1 to 9. Without effect for pairs.'),
    criteria: z.string().trim().max(20_000).nullable().default(null).describe('What the labels mean, in Markdown.'),
    reviewers: z.array(z.uuid()).max(100).default([]).describe('Ids of members; empty = every member.'),
    overlap: z.int().min(1).max(10).default(1).describe('Answers that each item needs, from different reviewers.'),
  })
  .refine(({ reviewers, overlap }) => reviewers.length === 0 || new Set(reviewers).size >= overlap, {
    error: 'expected at least as many reviewers as answers per item',
    path: ['reviewers'],
  });
export type CreateReviewQueue = z.infer<typeof createReviewQueueSchema>;
/** As a client sends it. */
export type NewReviewQueue = z.input<typeof createReviewQueueSchema>;

const time = z.string();

export const reviewQueueSchema = z.object({
  id: z.string(),
  name: z.string(),
  run: z.string().nullable().describe('Name; null: all runs.'),
  query: z.string().describe('In its canonical spelling.'),
  seed: z.number(),
  mode: z.enum(REVIEW_MODES),
  labels: z.array(z.string()).describe('Of the keys 1 to 9; empty for pairs.'),
  criteria: z.string().nullable(),
  reviewers: z.array(z.object({ id: z.string(), name: z.string() })).describe('Empty: every member.'),
  overlap: z.number(),
  author: z.string().describe('Name of the member that created it.'),
  created_at: time,
  closed_at: time.nullable().describe('When it was closed. A closed queue takes no more answers, and every answer is an annotation.'),
  items: z.number().describe('Erased rollouts are not counted.'),
  complete: z.number().describe('Items with `overlap` answers.'),
  answers: z.number(),
  choices: z.record(z.string(), z.number()).describe('Answers by label, or by a, b and tie.'),
  agreement: z
    .object({
      alpha: z.number().nullable().describe("Krippendorff's alpha; null: no item with two answers, or all answers are equal."),
      low: z.number().nullable().describe('95 % bootstrap interval; null in lists, and for fewer than two such items.'),
      high: z.number().nullable(),
      items: z.number().describe('Items with two answers or more, which it compares.'),
    })
    .describe('docs/reference/metrics.md#agreement'),
  can_review: z.boolean().describe('Whether the caller may answer.'),
  can_manage: z.boolean().describe('Whether the caller may close and delete it: its author, or an owner of the organisation.'),
});
export const reviewQueueListSchema = z.object({ queues: z.array(reviewQueueSchema) });

export const reviewQueueDetailSchema = reviewQueueSchema.extend({
  progress: z
    .array(z.object({ reviewer: z.string(), answered: z.number(), skipped: z.number(), last_at: time.nullable() }))
    .describe('Most answers first.'),
});

const answer = z.object({ reviewer: z.string(), choice: z.string(), comment: z.string().nullable(), answered_at: time });

export const reviewItemSchema = z.object({
  position: z.number().describe('1 for the first.'),
  rollouts: z.array(z.string()).describe('Ids: one, or two of a pair, a and b.'),
  complete: z.boolean(),
  answer: z
    .object({ choice: z.string().nullable(), comment: z.string().nullable(), skipped: z.boolean(), answered_at: time.nullable() })
    .nullable()
    .describe('Of the caller.'),
  others: z.array(answer).describe('Answers of others; empty until the item is complete or the queue is closed.'),
  previous: z.number().nullable().describe('Position of the item that the caller answered or skipped before this one.'),
});

export const nextReviewBodySchema = z.strictObject({
  skipped: z.boolean().default(false).describe('Also items that the caller has skipped.'),
});
export type NextReviewBody = z.infer<typeof nextReviewBodySchema>;

export const nextReviewSchema = z.object({
  item: reviewItemSchema.nullable().describe('Reserved for the caller for 15 minutes; null: no item is left for the caller now.'),
  items: z.number(),
  complete: z.number(),
  answered: z.number().describe('By the caller.'),
  skipped: z.number().describe('By the caller, and not answered since.'),
});

export const reviewAnswerBodySchema = z
  .strictObject({
    choice: z
      .string()
      .max(40)
      .nullable()
      .describe(`A label of the queue, or for pairs ${PAIR_CHOICES.join(', ')}; null: skip the item.`),
    comment: z.string().trim().min(1).max(10_000).nullable().default(null),
  })
  .refine(({ choice, comment }) => choice !== null || comment === null, { error: 'a skipped item has no comment', path: ['comment'] });
export type ReviewAnswerBody = z.infer<typeof reviewAnswerBodySchema>;
export type NewReviewAnswer = z.input<typeof reviewAnswerBodySchema>;

export type ReviewQueue = z.infer<typeof reviewQueueSchema>;
export type ReviewQueueList = z.infer<typeof reviewQueueListSchema>;
export type ReviewQueueDetail = z.infer<typeof reviewQueueDetailSchema>;
export type ReviewItem = z.infer<typeof reviewItemSchema>;
export type NextReview = z.infer<typeof nextReviewSchema>;

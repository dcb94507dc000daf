import { z } from 'zod';
import { channelName, gitRef, gitUrl, subdirectory } from './hosting.schema.ts';

/** The git repository of an environment: a push to its branch starts a deploy. */

export const gitLinkBodySchema = z.strictObject({
  url: gitUrl,
  ref: gitRef.nullish().describe('The branch that is deployed. Default: the default branch of the repository.'),
  subdirectory: subdirectory.nullish().describe('The folder of the environment. Default: the root.'),
  channel: channelName.nullish().describe('Promoted by each deploy. Default `stable`; null: none.'),
});
export type GitLinkBody = z.output<typeof gitLinkBodySchema>;

const gitLinkSchema = z.object({
  url: z.string(),
  ref: z.string().nullable(),
  subdirectory: z.string().nullable(),
  channel: z.string().nullable(),
  webhook_url: z.string().describe('Where the git server sends its pushes: as JSON, signed with the secret.'),
  has_secret: z.boolean(),
  pushed_at: z.string().nullable().describe('When the last push started a deploy.'),
});
export type GitLinkView = z.output<typeof gitLinkSchema>;

export const gitLinkAnswerSchema = z.object({ link: gitLinkSchema.nullable().describe('Null: the environment is not linked.') });

export type GitLinkAnswer = z.output<typeof gitLinkAnswerSchema>;

/** With a new secret, which is not shown again. */
export const linkedGitSchema = gitLinkSchema.extend({ secret: z.string().nullable().describe('Only when it is new.') });
export type LinkedGit = z.output<typeof linkedGitSchema>;

export const gitHookAnswerSchema = z.object({
  deploy: z.string().nullable().describe('Id of the deploy that the push started; null: none.'),
  ignored: z.string().nullable().describe('Why it started none.'),
});
export type GitHookAnswer = z.output<typeof gitHookAnswerSchema>;

import { PLAIN_STYLE_SOURCE, plainPage } from '../platform/http/plain-page.ts';

/** Replace the headers of other responses: this page has one style, and one form that posts to this origin. */
export const SIGN_IN_PAGE_HEADERS = {
  'content-security-policy': `default-src 'none'; style-src ${PLAIN_STYLE_SOURCE}; form-action 'self'; frame-ancestors 'none'`,
  'cache-control': 'no-store',
};

/** `next`: a checked path, see next-path.ts. */
export const signInPage = (token: string, next: string): string =>
  plainPage({
    title: 'Sign in to Palestra',
    main: `<h1>Sign in to Palestra</h1>
<p>This signs the browser in. The link works once.</p>
<form method="post" action="/login">
<input type="hidden" name="token" value="${encodeURIComponent(token)}">
<input type="hidden" name="next" value="${next.replaceAll('&', '&amp;')}">
<button>Sign in</button>
</form>`,
  });

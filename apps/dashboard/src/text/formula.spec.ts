import { describe, expect, test } from 'vitest';
import { renderFormula } from './formula-renderer.ts';
import { htmlOf } from './markdown-parser.ts';

const sources: string[] = [];
/** The sources of the formulas of a Markdown text; displayed ones start with `D:`. */
function formulasOf(markdown: string): string[] {
  sources.length = 0;
  htmlOf(markdown, ({ tex, display }) => {
    sources.push(display ? `D:${tex}` : tex);
    return '';
  });
  return [...sources];
}

describe('what is a formula', () => {
  test.each([
    ['so $x$ is', ['x']],
    ['$a_1$ and $b_2$, then $c*d*e$', ['a_1', 'b_2', 'c*d*e']],
    ['**The answer is $x*y*z$**', ['x*y*z']],
    ['*a $x_1 * x_2$ b*', ['x_1 * x_2']],
    ['- item with $\\frac{1}{2}$\n- $n\\log n$', ['\\frac{1}{2}', 'n\\log n']],
    ['| a | b |\n|---|---|\n| $x^2$ | 2 |', ['x^2']],
    ['\\(a+b\\) and \\[c\\]', ['a+b', 'D:c']],
    ['\\[\n\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}\n\\]', ['D:\\begin{aligned} a &= b \\\\ c &= d \\end{aligned}']],
    ['Then:\n\\[\n- x\n= 1\n\\]\nend', ['D:- x\n= 1']],
    ['Then\n$$\nx = 1\n$$\nend', ['D:x = 1']],
    ['in a line $$x^2$$ with text', ['D:x^2']],
    ['$$x$$', ['D:x']],
    ['$10$ and $2n + 1$', ['10', '2n + 1']],
    ['$\\text{cost is } \\$5$', ['\\text{cost is } \\$5']],
    ['$0 < x$', ['0 < x']],
  ])('%j', (markdown, expected) => {
    expect(formulasOf(markdown)).toEqual(expected);
  });
  test.each([
    'it costs $5 and $10',
    'from $5-$10',
    'between $5/month and 10$ a year',
    'US$5, CA$7',
    '$5, then 3$',
    '$HOME/bin:$PATH',
    '${A}:${B}',
    'the variables $foo and bar$',
    '`$x$` and `\\(y\\)`',
    '```\n$x$\n$$y$$\n\\[z\\]\n```',
    '    $x$ in indented code',
    'escaped \\$x\\$',
    '$ x $',
    '$$',
    '$$ $$',
    '\\[ never closed',
    '$x\n\ny$',
    `$${'x'.repeat(4_000)}$`,
    '[link](https://example.org/$a$b)',
  ])('not %j', (markdown) => {
    expect(formulasOf(markdown)).toEqual([]);
  });
  test('its source is shown until the renderer is loaded, or if it has an error, without interpreting it', () => {
    expect(htmlOf('$x<b>$').html).toBe('<p><span class="formula" title="$x&lt;b&gt;$"><code>$x&lt;b&gt;$</code></span></p>\n');
    expect(htmlOf('$\\frac{1}$', renderFormula).html).toContain('<code>$\\frac{1}$</code>');
    expect(htmlOf('$x$', renderFormula).html).toContain('<mi>x</mi>');
  });
});

test('letters of other alphabets are their characters, which browsers draw', () => {
  const letters = (tex: string) => renderFormula({ tex, display: false })!.replaceAll(/<[^>]*>/g, '');
  expect(letters('\\mathbb{E}_{x \\in \\mathbb{R}}[\\mathcal{L}]')).toBe('𝔼x∈ℝ[ℒ]');
  expect(letters('\\mathfrak{Zg} \\mathbf{x1} \\boldsymbol{w} \\mathbb{1}')).toBe('ℨ𝔤𝐱𝟏𝒘𝟙');
  expect(letters('\\mathrm{d} \\mathsf{a} \\mathbf{+}')).toBe('da+');
});

describe('hostile formulas', () => {
  const render = (tex: string) => renderFormula({ tex, display: true });
  test.each([
    ['a link', '\\href{javascript:alert(1)}{x}'],
    ['a class', '\\htmlClass{pwned}{x}'],
    ['an id', '\\htmlId{root}{x}'],
    ['an inline style', '\\htmlStyle{position:fixed}{x}'],
    ['an image', '\\includegraphics{https://evil.example/x.png}'],
    ['a macro without end', '\\def\\a{\\a\\a}\\a'],
    [
      'a macro that doubles',
      `\\def\\a{xx}${[...'bcdefghijklmnop'].map((name, i) => `\\def\\${name}{\\${'abcdefghijklmnop'[i]}\\${'abcdefghijklmnop'[i]}}`).join('')}\\p`,
    ],
    ['a long result', `\\def\\a{${'x'.repeat(900)}}\\def\\b{${'\\a'.repeat(150)}}\\b`],
    ['deep fractions', `${'\\frac{'.repeat(300)}x${'}{y}'.repeat(300)}`],
    ['deep groups', '{'.repeat(3_000)],
    ['an unknown command', '\\nosuchcommand'],
  ])('%s is shown as source', (_, tex) => {
    expect(render(tex)).toBeNull();
  });
  test('sizes are bounded and nothing has a style', () => {
    expect(render('\\rule{500em}{500em}')).toMatch(/width="20em" height="20em"/);
    expect(render('\\fcolorbox{red}{blue}{x} \\pmb{y} \\boxed{z}')).not.toContain(' style=');
    expect(render('<img src=x onerror=alert(1)>')).not.toContain('<img');
    expect(render('\\text{<script>}')).not.toContain('<script');
  });
});

import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({
  plugins: [react(), tailwindcss()],
  resolve: { conditions: ['@palestra/source', 'module', 'browser', 'development|production'] },
  // Inlined assets would be data: URLs, which the CSP (img-src, font-src 'self') refuses.
  build: { target: 'es2022', assetsInlineLimit: 0, modulePreload: { polyfill: false }, manifest: true },
  server: {
    host: '127.0.0.1',
    port: 19_700,
    proxy: { '/v1': { target: process.env['PALESTRA_URL'] ?? 'http://127.0.0.1:8080', ws: true } },
  },
});

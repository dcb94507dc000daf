import '@fontsource-variable/inter';
import '@fontsource-variable/jetbrains-mono';
import theme from 'vitepress/theme-without-fonts';
import './style.css';

export default theme;

// What is wider than the screen scrolls in its own box: let the keyboard reach that box.
function reach() {
    for (const box of document.querySelectorAll("pre, .table-wrapper, .math-wrapper, .output")) {
        if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
        else box.removeAttribute("tabindex");
    }
}
window.addEventListener("load", reach);
window.addEventListener("resize", reach);

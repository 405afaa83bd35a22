// Written by tests/python/make_properties.py from what tokenizers 0.23.3 answers.
#include "sluice/text/characters/properties.h"

namespace sluice::text {

// clang-format off
const Property kProperties[] = {
{"cs inhighprivateusesurrogates inhighsurrogates inlowsurrogates surrogate", -1,  ""},
{"[:ascii:] ascii inbasiclatin", -1,  "0W4"}, {"anatolianhieroglyphs hluw", -1,  "WWn2dI"}, {"any", -1,  "0WWWY1"},
{"brai braille inbraillepatterns", -1,  "WWAW8"}, {"buhd buhid", -1,  "Ww5K"}, {"cari carian", -1,  "WrW2n1"},
{"chorasmian chrs", -1,  "mzZ2S"}, {"cpmn cyprominoan", -1,  "myh2Z3"}, {"deseret dsrt indeseret", -1,  "WWX2m2"},
{"dogr dogra", -1,  "WWc2y1"}, {"elba elbasan", -1,  "WeX2e1"}, {"elym elymaic", -1,  "W-Z2N"},
{"emod emojimodifier", -1,  "x-y35"}, {"goth gothic", -1,  "mvW2R"}, {"gukh gurungkhema", -1,  "Weu2w1"},
{"hano hanunoo", -1,  "Wv5L"}, {"idst idstrinaryoperator", -1,  "o-B2"}, {"idsu idsunaryoperator", -1,  "+-B2"},
{"inadlam", -1,  "Wew3W3"}, {"inaegeannumbers", -1,  "WeW2W2"}, {"inahom", -1,  "Wub2m2"}, {"inalchemicalsymbols", -1, 
"Wuz3W4"}, {"inalphabeticpresentationforms", -1,  "Wu+1m2"}, {"inanatolianhieroglyphs", -1,  "WWn2WK"},
{"inancientgreekmusicalnotation", -1,  "Wmq3m2"}, {"inancientgreeknumbers", -1,  "WgW2m2"}, {"inancientsymbols", -1, 
"miW2W2"}, {"inarabic", -1,  "Wm1W8"}, {"inarabicextendeda", -1,  "Wb2W3"}, {"inarabicextendedb", -1,  "mZ2m1"},
{"inarabicextendedc", -1,  "WsZ2W2"}, {"inarabicmathematicalalphabeticsymbols", -1,  "Wmx3W8"},
{"inarabicpresentationformsa", -1,  "mw+1mL"}, {"inarabicpresentationformsb", -1,  "mp-1m4"},
{"inarabicsupplement", -1,  "mw1m1"}, {"inarmenian", -1,  "mf1W3"}, {"inarrows", -1,  "mi8m3"}, {"inavestan", -1, 
"WuY2W2"}, {"inbalinese", -1,  "Wu6W4"}, {"inbamum", -1,  "Wrf1W3"}, {"inbamumsupplement", -1,  "WWw2WI"},
{"inbassavah", -1,  "msw2m1"}, {"inbatak", -1,  "W+6W2"}, {"inbengali", -1,  "Wi2W4"}, {"inbhaiksuki", -1,  "WWd2m3"},
{"inblockelements", -1,  "Wi9W1"}, {"inbopomofo", -1,  "WeCm1"}, {"inbopomofoextended", -1,  "WjCW1"},
{"inboxdrawing", -1,  "We9W4"}, {"inbrahmi", -1,  "WWa2W4"}, {"inbuginese", -1,  "Wm6W1"}, {"inbuhid", -1,  "Ww5W1"},
{"inbyzantinemusicalsymbols", -1,  "WWq3W8"}, {"incarian", -1,  "WrW2W2"}, {"incaucasianalbanian", -1,  "mfX2W2"},
{"inchakma", -1,  "Wea2m2"}, {"incham", -1,  "Wmg1W3"}, {"incherokee", -1,  "Wz4W3"}, {"incherokeesupplement", -1, 
"mxg1m2"}, {"inchesssymbols", -1,  "Wm+3m3"}, {"inchorasmian", -1,  "mzZ2m1"}, {"incjkcompatibility", -1,  "WuCW8"},
{"incjkcompatibilityforms", -1,  "mn-1W1"}, {"incjkcompatibilityideographs", -1,  "We+1WG"},
{"incjkcompatibilityideographssupplement", -1,  "WW+5WH"}, {"incjkradicalssupplement", -1,  "WqBW4"},
{"incjkstrokes", -1,  "WkCm1"}, {"incjksymbolsandpunctuation", -1,  "WWCW2"}, {"incjkunifiedideographs", -1, 
"WmJWmK"}, {"incjkunifiedideographsextensiona", -1,  "WWDWk6"}, {"incjkunifiedideographsextensionb", -1,  "WWW4Wtf1"},
{"incjkunifiedideographsextensionc", -1,  "Wuf5WY4"}, {"incjkunifiedideographsextensiond", -1,  "Wwj5W7"},
{"incjkunifiedideographsextensione", -1,  "WXk5mq5"}, {"incjkunifiedideographsextensionf", -1,  "mrp5Wg7"},
{"incjkunifiedideographsextensiong", -1,  "WWW6mw4"}, {"incjkunifiedideographsextensionh", -1,  "mwa6WZ4"},
{"incjkunifiedideographsextensioni", -1,  "m-w5mJ"}, {"incombiningdiacriticalmarks", -1,  "WOm3"},
{"incombiningdiacriticalmarksextended", -1,  "mr6m2"}, {"incombiningdiacriticalmarksforsymbols", -1,  "mc8m1"},
{"incombiningdiacriticalmarkssupplement", -1,  "Wk7W2"}, {"incombininghalfmarks", -1,  "Wn-1G"},
{"incommonindicnumberforms", -1,  "mXg1G"}, {"incontrolpictures", -1,  "WW9W2"}, {"incoptic", -1,  "WaBW4"},
{"incopticepactnumbers", -1,  "WtW2W1"}, {"incountingrodnumerals", -1,  "Wxq3W1"}, {"incuneiform", -1,  "WWe2WW1"},
{"incuneiformnumbersandpunctuation", -1,  "WWf2W4"}, {"incurrencysymbols", -1,  "Wb8m1"}, {"incypriotsyllabary", -1, 
"WWY2W2"}, {"incyprominoan", -1,  "myh2m3"}, {"incyrillic", -1,  "WW1W8"}, {"incyrillicextendeda", -1,  "WlBW1"},
{"incyrillicextendedb", -1,  "Wof1W3"}, {"incyrillicextendedc", -1,  "Wa7G"}, {"incyrillicextendedd", -1,  "mXu3W3"},
{"incyrillicsupplement", -1,  "We1m1"}, {"indevanagari", -1,  "We2W4"}, {"indevanagariextended", -1,  "Wdg1W1"},
{"indevanagariextendeda", -1,  "Wuc2W3"}, {"indingbats", -1,  "Wu9W6"}, {"indivesakuru", -1,  "Wec2W3"},
{"indogra", -1,  "WWc2m2"}, {"indominotiles", -1,  "mXy3m3"}, {"induployan", -1,  "WWl3W5"},
{"inearlydynasticcuneiform", -1,  "Waf2m6"}, {"inegyptianhieroglyphformatcontrols", -1,  "mXj2m1"},
{"inegyptianhieroglyphs", -1,  "WWi2mX1"}, {"inegyptianhieroglyphsextendeda", -1,  "WZj2Wz3"}, {"inelbasan", -1, 
"WeX2m1"}, {"inelymaic", -1,  "W-Z2W1"}, {"inemoticons", -1,  "Wmz3m2"}, {"inenclosedalphanumerics", -1,  "WZ9W5"},
{"inenclosedalphanumericsupplement", -1,  "Wey3W8"}, {"inenclosedcjklettersandmonths", -1,  "WmCW8"},
{"inenclosedideographicsupplement", -1,  "Wmy3W8"}, {"inethiopic", -1,  "Wm4WC"}, {"inethiopicextended", -1,  "WiBW3"},
{"inethiopicextendeda", -1,  "Wug1m1"}, {"inethiopicextendedb", -1,  "W-v3W1"}, {"inethiopicsupplement", -1,  "Wy4W1"},
{"ingaray", -1,  "WgZ2m2"}, {"ingeneralpunctuation", -1,  "WW8m3"}, {"ingeometricshapes", -1,  "Wj9W3"},
{"ingeometricshapesextended", -1,  "Wyz3W4"}, {"ingeorgian", -1,  "Wb4W3"}, {"ingeorgianextended", -1,  "ma7m1"},
{"ingeorgiansupplement", -1,  "WeBm1"}, {"inglagolitic", -1,  "WWBW3"}, {"inglagoliticsupplement", -1,  "WWu3m1"},
{"ingothic", -1,  "mvW2W1"}, {"ingrantha", -1,  "Wua2W4"}, {"ingreekandcoptic", -1,  "mRm4"}, {"ingreekextended", -1, 
"Wu7W8"}, {"ingujarati", -1,  "Wq2W4"}, {"ingunjalagondi", -1,  "Whd2m2"}, {"ingurmukhi", -1,  "Wm2W4"},
{"ingurungkhema", -1,  "Weu2W2"}, {"inhalfwidthandfullwidthforms", -1,  "Wu-1m7"}, {"inhangulcompatibilityjamo", -1, 
"mfCW3"}, {"inhanguljamo", -1,  "We4W8"}, {"inhanguljamoextendeda", -1,  "Whg1W1"}, {"inhanguljamoextendedb", -1, 
"mzr1mY2"}, {"inhangulsyllables", -1,  "WWh1mzA"}, {"inhanifirohingya", -1,  "WeZ2W2"}, {"inhanunoo", -1,  "Wv5W1"},
{"inhatran", -1,  "WdY2W1"}, {"inhebrew", -1,  "mi1m3"}, {"inhiragana", -1,  "WYCW3"},
{"inideographicdescriptioncharacters", -1,  "m-BG"}, {"inideographicsymbolsandpunctuation", -1,  "W-x2W1"},
{"inimperialaramaic", -1,  "WYY2W1"}, {"inindicsiyaqnumbers", -1,  "mZx3m2"}, {"ininscriptionalpahlavi", -1, 
"WxY2W1"}, {"ininscriptionalparthian", -1,  "WwY2W1"}, {"inipaextensions", -1,  "mIW3"}, {"injavanese", -1,  "Wig1W3"},
{"inkaithi", -1,  "Waa2m2"}, {"inkaktoviknumerals", -1,  "Wsq3W1"}, {"inkanaextendeda", -1,  "Wei3m1"},
{"inkanaextendedb", -1,  "m-h3G"}, {"inkanasupplement", -1,  "WWi3W8"}, {"inkanbun", -1,  "miCG"},
{"inkangxiradicals", -1,  "WuBW7"}, {"inkannada", -1,  "Wa3W4"}, {"inkatakana", -1,  "WbCW3"},
{"inkatakanaphoneticextensions", -1,  "mlCG"}, {"inkawi", -1,  "Wud2W3"}, {"inkayahli", -1,  "Weg1m1"},
{"inkharoshthi", -1,  "WmY2W3"}, {"inkhitansmallscript", -1,  "WuY3WG"}, {"inkhmer", -1,  "Wy5W4"},
{"inkhmersymbols", -1,  "Wl6W1"}, {"inkhojki", -1,  "Wma2m2"}, {"inkhudawadi", -1,  "mra2m2"}, {"inkiratrai", -1, 
"Wgx2W2"}, {"inlao", -1,  "Wq3W4"}, {"inlatin1supplement", -1,  "W4W4"}, {"inlatinextendeda", -1,  "W8W4"},
{"inlatinextendedadditional", -1,  "Wm7W8"}, {"inlatinextendedb", -1,  "WCm6"}, {"inlatinextendedc", -1,  "WZBW1"},
{"inlatinextendedd", -1,  "Wvf1W7"}, {"inlatinextendede", -1,  "mvg1W2"}, {"inlatinextendedf", -1,  "WyX2W2"},
{"inlatinextendedg", -1,  "Wut3W8"}, {"inlepcha", -1,  "WW7m2"}, {"inletterlikesymbols", -1,  "We8m2"},
{"inlimbu", -1,  "We6m2"}, {"inlineara", -1,  "WmX2WC"}, {"inlinearbideograms", -1,  "WaW2W4"},
{"inlinearbsyllabary", -1,  "WWW2W4"}, {"inlisu", -1,  "mcf1m1"}, {"inlisusupplement", -1,  "mzd2G"}, {"inlycian", -1, 
"WqW2W1"}, {"inlydian", -1,  "WfY2W1"}, {"inmahajani", -1,  "mga2m1"}, {"inmahjongtiles", -1,  "WWy3m1"},
{"inmakasar", -1,  "Wtd2W1"}, {"inmalayalam", -1,  "We3W4"}, {"inmandaic", -1,  "WY2W1"}, {"inmanichaean", -1, 
"WsY2W2"}, {"inmarchen", -1,  "mZd2m2"}, {"inmasaramgondi", -1,  "Wed2W3"}, {"inmathematicalalphanumericsymbols", -1, 
"WWr3WW1"}, {"inmathematicaloperators", -1,  "Wm8W8"}, {"inmayannumerals", -1,  "Wtq3W1"}, {"inmedefaidrin", -1, 
"Wox2W3"}, {"inmeeteimayek", -1,  "W+g1W2"}, {"inmeeteimayekextensions", -1,  "Wtg1W1"}, {"inmendekikakui", -1, 
"WWw3W7"}, {"inmeroiticcursive", -1,  "WjY2W3"}, {"inmeroitichieroglyphs mero meroitichieroglyphs", -1,  "WiY2W1"},
{"inmiao", -1,  "Wux2W5"}, {"inmiscellaneousmathematicalsymbolsa", -1,  "W+9m1"},
{"inmiscellaneousmathematicalsymbolsb", -1,  "WiAW4"}, {"inmiscellaneoussymbols", -1,  "Wm9W8"},
{"inmiscellaneoussymbolsandarrows", -1,  "WuAW8"}, {"inmiscellaneoussymbolsandpictographs", -1,  "Wuy3WO"},
{"inmiscellaneoustechnical", -1,  "Wu8W8"}, {"inmodi", -1,  "Wmb2W3"}, {"inmodifiertoneletters", -1,  "Wuf1W1"},
{"inmongolian", -1,  "WW6m5"}, {"inmongoliansupplement", -1,  "Wpb2W1"}, {"inmro", -1,  "Wow2m1"}, {"inmultani", -1, 
"Wqa2m1"}, {"inmusicalsymbols", -1,  "Weq3W8"}, {"inmyanmar", -1,  "WW4W5"}, {"inmyanmarextendeda", -1,  "Wpg1W1"},
{"inmyanmarextendedb", -1,  "Wlg1W1"}, {"inmyanmarextendedc", -1,  "msb2m1"}, {"innabataean", -1,  "WaY2m1"},
{"innagmundari", -1,  "mcv3m1"}, {"innandinagari", -1,  "Wjc2W3"}, {"innewa", -1,  "WWb2W4"}, {"innewtailue", -1, 
"Wi6W3"}, {"innko", -1,  "W+1W2"}, {"innumberforms", -1,  "mg8W2"}, {"innushu", -1,  "mhi3mC"},
{"innyiakengpuachuehmong", -1,  "Weu3m2"}, {"inogham", -1,  "Wq5W1"}, {"inolchiki olchiki olck", -1,  "mY7m1"},
{"inoldhungarian", -1,  "WaZ2W4"}, {"inolditalic", -1,  "WuW2m1"}, {"inoldnortharabian narb oldnortharabian", -1, 
"WqY2W1"}, {"inoldpermic", -1,  "mwW2m1"}, {"inoldpersian", -1,  "WzW2W2"}, {"inoldsogdian", -1,  "WuZ2m1"},
{"inoldsoutharabian oldsoutharabian sarb", -1,  "WpY2W1"}, {"inoldturkic", -1,  "WWZ2m2"}, {"inolduyghur", -1, 
"mxZ2W2"}, {"inolonal", -1,  "mkv3m1"}, {"inopticalcharacterrecognition", -1,  "WY9W1"}, {"inoriya", -1,  "Wu2W4"},
{"inornamentaldingbats", -1,  "moz3m1"}, {"inosage", -1,  "mbX2m2"}, {"inosmanya", -1,  "WaX2m1"},
{"inottomansiyaqnumbers", -1,  "Wex3m2"}, {"inpahawhhmong", -1,  "Wuw2m4"}, {"inpalmyrene palm palmyrene", -1, 
"WZY2W1"}, {"inpaucinhau", -1,  "Wsc2W2"}, {"inphagspa", -1,  "WYg1W2"}, {"inphaistosdisc", -1,  "mkW2m1"},
{"inphoenician", -1,  "WeY2W1"}, {"inphoneticextensions", -1,  "We7W4"}, {"inphoneticextensionssupplement", -1, 
"Wi7W2"}, {"inplayingcards", -1,  "Wby3W3"}, {"inprivateusearea", -1,  "WWu1We6"}, {"inpsalterpahlavi", -1,  "WyY2m1"},
{"inrejang", -1,  "mfg1m1"}, {"inruminumeralsymbols", -1,  "WpZ2W1"}, {"inrunic", -1,  "Wr5W3"}, {"insamaritan", -1, 
"WW2W2"}, {"insaurashtra", -1,  "Wag1W3"}, {"insharada sharada shrd", -1,  "Wia2W3"}, {"inshavian shavian shaw", -1, 
"mYX2m1"}, {"inshorthandformatcontrols", -1,  "Wbl3G"}, {"insiddham", -1,  "Wib2W4"}, {"insinhala", -1,  "Wi3W4"},
{"insinhalaarchaicnumbers", -1,  "Wla2W1"}, {"insmallformvariants", -1,  "mo-1W1"}, {"insmallkanaextension", -1, 
"mfi3W2"}, {"insogdian", -1,  "mvZ2W2"}, {"insorasompeng", -1,  "mca2m1"}, {"insoyombo", -1,  "moc2W3"},
{"inspacingmodifierletters", -1,  "mLm2"}, {"inspecials", -1,  "m--1G"}, {"insundanese", -1,  "Wy6W2"},
{"insundanesesupplement", -1,  "Wc7G"}, {"insunuwar", -1,  "W+c2W2"}, {"insuperscriptsandsubscripts", -1,  "mZ8m1"},
{"insupplementalarrowsa", -1,  "m-9G"}, {"insupplementalarrowsb", -1,  "WeAW4"}, {"insupplementalarrowsc", -1, 
"WW+3W8"}, {"insupplementalmathematicaloperators", -1,  "WmAW8"}, {"insupplementalpunctuation", -1,  "WmBW4"},
{"insupplementalsymbolsandpictographs", -1,  "We+3W8"}, {"insupplementaryprivateuseareaa", -1,  "WWWUWWW2"},
{"insupplementaryprivateuseareab", -1,  "WWWW1WWW2"}, {"insuttonsignwriting", -1,  "WWs3mL"}, {"insylotinagri", -1, 
"WWg1m1"}, {"insymbolsandpictographsextendeda", -1,  "mp+3m4"}, {"insymbolsforlegacycomputing", -1,  "Wu+3W8"},
{"insymbolsforlegacycomputingsupplement", -1,  "WWp3WM"}, {"insyriac", -1,  "Wu1m2"}, {"insyriacsupplement", -1, 
"WZ2G"}, {"intagalog", -1,  "Wu5W1"}, {"intagbanwa", -1,  "Wx5W1"}, {"intags", -1,  "WWWSW4"}, {"intaile", -1, 
"mg6m1"}, {"intaitham", -1,  "Wn6m4"}, {"intaiviet", -1,  "Wqg1W3"}, {"intaixuanjingsymbols", -1,  "Wuq3W3"},
{"intakri", -1,  "Wqb2m2"}, {"intamil", -1,  "Wy2W4"}, {"intamilsupplement", -1,  "W+d2W2"}, {"intangsa", -1, 
"mpw2W3"}, {"intangut", -1,  "WWy2WW6"}, {"intangutcomponents", -1,  "WWY3WO"}, {"intangutsupplement", -1,  "WeZ3W4"},
{"intelugu", -1,  "WW3W4"}, {"inthaana", -1,  "Wy1W2"}, {"inthai", -1,  "Wm3W4"}, {"intibetan", -1,  "Wu3W8"},
{"intifinagh", -1,  "mfBm2"}, {"intirhuta", -1,  "Wab2W3"}, {"intodhri", -1,  "WkX2W2"}, {"intoto", -1,  "mqu3m1"},
{"intransportandmapsymbols", -1,  "Wqz3W4"}, {"intulutigalari", -1,  "Wya2W4"}, {"inugaritic", -1,  "WyW2W1"},
{"inunifiedcanadianaboriginalsyllabics", -1,  "WW5WK"}, {"inunifiedcanadianaboriginalsyllabicsextended", -1,  "mb6m2"},
{"inunifiedcanadianaboriginalsyllabicsextendeda", -1,  "mrc2G"}, {"invai", -1,  "Wef1WA"},
{"invariationselectors", -1,  "Wm-1G"}, {"invariationselectorssupplement", -1,  "WeWSm7"}, {"invedicextensions", -1, 
"mc7m1"}, {"inverticalforms", -1,  "mm-1G"}, {"invithkuqi", -1,  "mhX2m2"}, {"inwancho", -1,  "Wsu3W2"},
{"inwarangciti", -1,  "Wbc2W3"}, {"inyezidi", -1,  "WqZ2W2"}, {"inyijinghexagramsymbols", -1,  "WkJW2"},
{"inyiradicals", -1,  "maf1W2"}, {"inyisyllables", -1,  "WWe1ma1"}, {"inzanabazarsquare", -1,  "Wmc2m2"},
{"inznamennymusicalnotation", -1,  "Wup3m6"}, {"joinc joincontrol", -1,  "iW82"}, {"kiratrai krai", -1,  "Wgx2w1"},
{"lineseparator zl", -1,  "eX81"}, {"lyci lycian", -1,  "WqW2T"}, {"mahajani mahj", -1,  "mga2d1"},
{"maka makasar", -1,  "Wtd2P"}, {"medefaidrin medf", -1,  "Wox2x2"}, {"nagm nagmundari", -1,  "mcv3g1"},
{"newline", -1,  "A1"}, {"ogam ogham", -1,  "Wq5T"}, {"oldpermic perm", -1,  "mwW2h1"}, {"oldsogdian sogo", -1, 
"WuZ2e1"}, {"oldturkic orkh", -1,  "WWZ2f2"}, {"olduyghur ougr", -1,  "mxZ2Q"}, {"paragraphseparator zp", -1,  "fX81"},
{"pauc paucinhau", -1,  "Wsc2v1"}, {"phag phagspa", -1,  "WYg1u1"}, {"regionalindicator ri", -1,  "cly3Q"},
{"sogd sogdian", -1,  "mvZ2g1"}, {"soyo soyombo", -1,  "moc2p2"}, {"sylo sylotinagri", -1,  "WWg1j1"},
{"thaa thaana", -1,  "Wy1o1"}, {"todhri todr", -1,  "WkX2q1"}, {"toto", -1,  "mqu3V"}, {"vai vaii", -1,  "Wef1i9"},
{"zanabazarsquare zanb", -1,  "Wmc2e2"}, {"[:cntrl:] cc cntrl control", -1,  "0W1-2X1"},
{"aghb caucasianalbanian", -1,  "mfX2q1B1"}, {"armi imperialaramaic", -1,  "WYY2M19"}, {"avestan avst", -1, 
"WuY2s137"}, {"bali balinese", -1,  "Wu6j21o1"}, {"bamu bamum", -1,  "Wrf1u2eem1vH"}, {"bass bassavah", -1, 
"msw2U26"}, {"batak batk", -1,  "W+6q184"}, {"bugi buginese", -1,  "Wm6S22"}, {"cakm chakma", -1,  "Wea2r11I"},
{"egyp egyptianhieroglyphs", -1,  "WWi2sY1Axy3"}, {"hanifirohingya rohg", -1,  "WeZ2e18A"},
{"inscriptionalpahlavi phli", -1,  "WxY2J58"}, {"inscriptionalparthian prti", -1,  "WwY2M28"}, {"ital olditalic", -1, 
"WuW2a193"}, {"kaithi kthi", -1,  "Waa2Z2A1"}, {"kali kayahli", -1,  "Weg1k111"}, {"khoj khojki", -1,  "Wma2I1l1"},
{"khudawadi sind", -1,  "mra2x15A"}, {"lisu", -1,  "mcf1m1mrU1"}, {"lydi lydian", -1,  "WfY2Q51"},
{"mand mandaic", -1,  "WY2S21"}, {"mani manichaean", -1,  "WsY2d14C"}, {"mend mendekikakui", -1,  "WWw3b62G"},
{"modi", -1,  "Wmb2b2BA"}, {"nabataean nbat", -1,  "WaY2V89"}, {"newa", -1,  "WWb2y215"}, {"nko nkoo", -1,  "W+1x123"},
{"nshu nushu", -1,  "X-x21kiGiC"}, {"oldpersian xpeo", -1,  "WzW2a14E"}, {"olonal onao", -1,  "mkv3h141"},
{"osage osge", -1,  "mbX2a14a1"}, {"osma osmanya", -1,  "WaX2U2A"}, {"phnx phoenician", -1,  "WeY2S31"},
{"rejang rjng", -1,  "mfg1a1B1"}, {"runic runr", -1,  "Wr5h23B"}, {"samaritan samr", -1,  "WW2k12F"},
{"saur saurashtra", -1,  "Wag1c28C"}, {"sidd siddham", -1,  "Wib2s12c1"}, {"sora sorasompeng", -1,  "mca2P7A"},
{"sund sundanese", -1,  "Wy6W2W88"}, {"sunu sunuwar", -1,  "W+c2Y1EA"}, {"tagalog tglg", -1,  "Wu5M91"},
{"taile tale", -1,  "mg6U25"}, {"taiviet tavt", -1,  "Wqg1Z2O5"}, {"takr takri", -1,  "Wqb2w16A"}, {"tangsa tnsa", -1, 
"mpw2l21A"}, {"thai", -1,  "Xm3w15S"}, {"tirh tirhuta", -1,  "Wab2e28A"}, {"ugar ugaritic", -1,  "WyW2U11"},
{"wancho wcho", -1,  "Wsu3w151"}, {"wara warangciti", -1,  "Wbc2p2C1"}, {"yi yiii", -1,  "WWe1ja13t1"},
{"[:xdigit:] ahex asciihexdigit xdigit", -1,  "m1A76Q6"}, {"adlam adlm", -1,  "Wew3i24A42"}, {"ahom", -1, 
"Wub2R2F4N"}, {"bopo bopomofo", -1,  "gN2vmBh1m3W1"}, {"brah brahmi", -1,  "WWa2k24a191"},
{"canadianaboriginal cans", -1,  "WW5WKmHc2wjW2G"}, {"cher cherokee", -1,  "Wz4s226oxb1m2"}, {"co privateuse", -1, 
"WWu1We6WuXS+--12+--1"}, {"copt coptic qaac", -1,  "YVEmaAq357"}, {"gara garay", -1,  "WgZ2c13T82"},
{"hatr hatran", -1,  "WdY2J1255"}, {"hung oldhungarian", -1,  "WaZ2p1Dp176"}, {"idsb idsbinaryoperator", -1, 
"m-B22AnF1"}, {"java javanese", -1,  "Wig1k22A42"}, {"kawi", -1,  "Wud2H1f13T"}, {"khitansmallscript kits", -1, 
"a-x21xu6sEf11"}, {"lepc lepcha", -1,  "WW7u13F33"}, {"lina lineara", -1,  "WmX2t99MA8"}, {"marc marchen", -1, 
"mZd2W12M1E"}, {"meeteimayek mtei", -1,  "Wtg1Nf6k12A"}, {"merc meroiticcursive", -1,  "WjY2O4K2k1"},
{"miao plrd", -1,  "Wux2h24v17H"}, {"mro mroo", -1,  "Wow2V1A42"}, {"nand nandinagari", -1,  "Wjc282k12B"},
{"phlp psalterpahlavi", -1,  "WyY2I74C7"}, {"radical", -1,  "WqBQ1v2Cs6"}, {"sgnw signwriting", -1,  "WWs3iKF51F"},
{"tagb tagbanwa", -1,  "Wx5D1312"}, {"tfng tifinagh", -1,  "mfBu172E1"}, {"yezi yezidi", -1,  "WqZ2g11322"},
{"armenian armn", -1,  "nf1c12o123Ziz15"}, {"bhaiksuki bhks", -1,  "WWd291j11EAT"}, {"bidic bidicontrol", -1, 
"ym11nl62Q5t14"}, {"cham", -1,  "Wmg1t19E2A24"}, {"cuneiform xsux", -1,  "WWe2wSc3l315Ba6"},
{"hmnp nyiakengpuachuehmong", -1,  "Weu3j13E2A42"}, {"khmer khmr", -1,  "Wy5+22A6AcFW1"}, {"myanmar mymr", -1, 
"WW4W5Wgc1VX3W1mYRK"}, {"newtailue talu", -1,  "Wi6i14Q6B32"}, {"oids otheridstart", -1,  "ba62na21L1ix32"},
{"syrc syriac", -1,  "Wu1E1y123m8B"}, {"tang tangut", -1,  "W-x21Vu-58WOWG9"}, {"variationselector vs", -1, 
"hW6311mlv1GmtWQm7"}, {"deva devanagari", -1,  "We2n24F2QWxd1W1WmSA"}, {"dupl duployan", -1,  "WWl3h35D397A24"},
{"enclosingmark me", -1,  "ea12qn51+m1413hiX13"}, {"hmng pahawhhmong", -1,  "Wuw2c2AA171L5J"}, {"lana taitham", -1, 
"Wn6-11T2B6A6E"}, {"limb limbu", -1,  "We6V1C4C413C"}, {"mult multani", -1,  "Wqa2711141F1B"},
{"otheruppercase oupper", -1,  "Wh8GcQQWZp3Q6Q6Q"}, {"patternwhitespace patws", -1,  "95I1a31ey72O2"},
{"connectorpunctuation pc", -1,  "-21-+72J1+kt12O3l71"}, {"cprt cypriot", -1,  "WWY26211i1123121"},
{"glag glagolitic", -1,  "WWBW3Wzi371H271215"}, {"gong gunjalagondi", -1,  "Whd26121b112167A"}, {"hex hexdigit", -1, 
"m1A76Q6fr-1A76Q6"}, {"hira hiragana", -1,  "XYCs263Xx-2-8I1T3jbG1"}, {"mong mongolian", -1,  "WW62211K6v27h1rj-1D"},
{"gonm masaramgondi", -1,  "Wed27121i13112198A"}, {"linb linearb", -1,  "WWW2C1Q1J121F2EY1x3"},
{"loe logicalorderexception", -1,  "Wo35x35mt2321wda122112"}, {"malayalam mlym", -1,  "We3D131p113164G2Q"},
{"oidc otheridcontinue", -1,  "t51lM1X-39ep11nn12jd41fpp11"}, {"pcm prependedconcatenationmark", -1, 
"Wm16t61n11WC2m21w+X21F1"}, {"spaceseparator zs", -1,  "W11-31-k51-h2Ba11l11Wz31"}, {"tibetan tibt", -1, 
"Wu3e21a14d11a11F1742"}, {"[:blank:] blank", -1,  "91M1-31-k51-h2Ba11l11Wz31"}, {"dep deprecated", -1, 
"fA1ff11Ze2111fX22bc26vL2sctR1"}, {"diak divesakuru", -1,  "Wec272128121U122C9A"}, {"khar kharoshthi", -1, 
"WmY241258131T234A79"}, {"separator z", -1,  "W11-31-k51-h2BT251l11Wz31"}, {"vith vithkuqi", -1, 
"mhX2B1F17121B1F1712"}, {"hebr hebrew", -1,  "ni1t18R46efz1Q151112121A"}, {"mcm modifiercombiningmark", -1, 
"qo1221Z416132XF21331V1"}, {"[:space:] space whitespace wspace", -1,  "95I1a31Q1-k51-h2BT251l11Wz31"},
{"cyrillic cyrl", -1,  "WW1b42f5mw5BW51i21dZ4W1WYUW3kyL2Wmu1+1X11"}, {"ecomp emojicomponent", -1, 
"Z11615Ap+71r61hft11s+y1QxF5mj14ipXOW3"}, {"finalpunctuation pf", -1,  "x51zw7131S1ek31114121F131"},
{"geor georgian", -1,  "Wb4c111512h114my2h123WY4c11151"}, {"hyphen", -1,  "j11-31yc11xp41fW22bm31ZN1dhp11f51t21"},
{"lt titlecaseletter", -1,  "bE12121c11ri788888C1F1l11"}, {"initialpunctuation pi", -1, 
"h51ix712221P1ek31114121F131"}, {"lao laoo", -1,  "Xq3211151O111N2511171A24"},
{"odi otherdefaultignorablecodepoint", 339,  "lQ1lm32po12lb21+d41xnp11l29dWWQ11UW3Wy3"}, {"tulutigalari tutg", -1, 
"Wya2A11211c11A1121141A1282"}, {"letternumber nl", -1,  "kt53lp2Z124+p31P9E3hrTAmoMr1iE181c45gX8l3"},
{"idcompatmathstart", -1,  "Ym8141M1Ybj31P1V1P1V1P1V1P1V1P1"}, {"kannada knda", -1,  "Wa3D131N1A152913147262142A13"},
{"qmark quotationmark", -1,  "Y1141Z41F1yw78P2dm31fE4D3Xnp14z5141w22"}, {"sinh sinhala", -1, 
"Xi331I3O191127314611186A23i-W2K"}, {"telu telugu", 323,  "jW3131N1G291314721321242A7"}, {"beng bengali", -1, 
"Wi2418222M1711342922248142152P"}, {"gujarati gujr", -1,  "Xq2319131M1712152A131321F42C77"}, {"hang hangul", 143, 
"kXC2X8+2n3VX2VXtTTZKazACN4n1az9V36262623"}, {"kana katakana", 169,  "XbCw223mEl11u2kWp1A1j1oYi14171211-83o11E4"},
{"oriya orya", -1,  "Xu2318222M1712152922237342152I"}, {"gran grantha", -1,  "Wua2418222M1712152922232161572735"},
{"gurmukhi guru", -1,  "Xm2316422M17121212211542233174117H"}, {"defaultignorablecodepoint di", 514, 
"j51kh11kl45x-15Q5n151Amit1Gl71Wjl14lc58cqhO1UW3W4m7"}, {"uideo unifiedideograph", 71, 
"WWDWk6W2WmKkmM21112A1111223sch3wX46+62Yq5Enf7FkJYj4hw45WZ4"}, {"idcompatmathcontinue", 517,  "o5251sz713B1F"},
{"nchar noncharactercodepoint", 300, 
"mk-1W1kG2+--12+--12+--12+--12+--12+--12+--12+--12+--12+--12+--12+--12+--12+--1WWW2WWW22"}, {"tamil taml", 318, 
"Yy2216331432111232333C4533142161ELt-a2D"}, {"dashpunctuation pd", 510, 
"j51me11Xo31nW34am31V241S1+D1J1l31w21rfp12b11i81em31+91"}, {"cf format", 494, 
"j51kh11nl41y-15Q5n151Alqt11v73qXDGWZY14lc58cqhO1UW3"}, {"currencysymbol sc", -1, 
"a11z34fd11x31oF2oF271r71d81bI1xi21ac2X1txX11ZkL1i31w41x6232s-74+um11mj21"}, {"ideo ideographic", 530, 
"cWC2P9E3bco1k821112A1111223a22g3geT1Ru-58sc1f1AdZ9iCaen2+G"}, {"han hani", 537, 
"WqBQ1v2Cs6l12q11czl23B2Eu-58sc1f1AdZ9iC"}, {"dash", 534,  "pY81d11F1cC1"}, {"olower otherlowercase", -1, 
"g51F1rF972U5W31q11Xi31lX3-1D1Y1b1nL1D1GDp6GmQQoy12+mU2o61X4332YR491sWN1231g119rZs1+1"}, {"patsyn patternsyntax", 115, 
"X1FA7Q411Q4Y1711121112414131N1V1uu7O8F2J1An9cl1UiZ1WGW4XC34PF1jep12b82"}, {"inherited qaai zinh", 339, 
"WOm3r82aEBQ1WN4xg4VXG31D17416132c6W2iG2Y6X1vv34h32bhp1GGElU1Y71wY41a+k1k12NWH3H827U4"}, {"modifiersymbol sk", 13, 
"+2111d21614131fG4CE57111Hr31E2Ye11qv5113B3D3D3D2ya42ZpTN92d32mU1E2cYKHxR111Y51"}, {"sd softdotted", -1, 
"f32a61v81U1q11K1WA1Y3111fe61p11D131a41z41bD1s62ov21bzf32o12o12o12o12o12o12o12o12o12o12o12o12ca21n92Q" "1"},
{"ethi ethiopic", 119,  "fo4142711142f1142X1142711142F1v1142Z22W1Tcl6N9717171717171717YfV626269717nbl2714121F"},
{"greek grek", 135,  "qR132411411113111K1-1Esf65o1545q21WAM262c126281111111V2r11F1E261J2319d91+nY11wkLl2H1-Yq1c2"},
{"latin latn", 182, 
"X2Q6Ql11F15N1V1XEd15xm6c16n1545D1c2oL1D1GDj4261R1Hf1ts2W1YrUc33Z2221118LEmPh11914syJ7wW1Q6QbX261g119" "bwr1V66"},
{"ebase emojimodifierbase", -1, 
"zm91x61G4tZp31y132123r322BLJ3143137111O1f6241L142k5335p21G391B1-H12188619A23u11z121211H31Db73g19"},
{"ext extender", -1, 
"t51uG2kR1vD1sJ1f41v21mN1-31Zg21u11ZJ1kC1a21fy41h15d32z23suR1sl11YU1M1f41i31L2xZL1mW22hk11R141dc11b91"
"q32oF3lc11fbK2ya1211ugS2nb11qQ3"}, {"ogrext othergraphemeextend", -1, 
"+j21O1cB1O1c31O1e7111421292d31O1t31F1rf21U1WW11511152b31d22uW11XX42ZfU1i31zkL2Wn41q31e81E191W3191211"
"351W71C1n71c81vJ1C1Zm11kbK2phO266jrhOW3"}, {"innoblock", 65, 
"W-BGmmq1W4WBW1WUW2m5m1W3W2W9W1m7m2m2m1m8m6mVm1WJW5mEm5m2m2W6W2WEW3W8W2m5m9W4m2Wj1Wo2mt5Wq6W2Ws1mSmDW"
"2W6W3W3W5W2Wj7mp8mOWe2m5mw3WMW2m6m1mIm3W6W4mr1mY1mCm3m2WAm3mEm1m6m1WFW8W1W3mOm2W2m2m5W8W8WW3WW1Wtf1W"
"1WxHWj4mz8mYtLW4W4m7mm-1"}, {"graphemelink grlink", -1, 
"jg21-31-31-31-31-31-31-31j32G1y31l31-31f61q52vs12U1z41jK1Z71b32c22hi41cqU1b11t41k41i31r91s71noN1cm11"
"f11E1v11v32h41q31q51Y31W43n31-31y71-31s31q31j81Z82X51p21I1n21bD1a82n21fD2ilG1"}, {"arab arabic", 35, 
"Wm15161E131W11ABQ1i31Y1mBV125h21Tmoy1p3GhB2m22s171W1Gm351d4Zx3VZ23t14Wut141R1211211A1411116141111113"
"12112111111111121124171414111A1H53151Hq12"}, {"mathsymbol sm", 517, 
"h11G3z1111j1141b11V1+N1lG3xn61D1d13D3h41d1561a255241212171V22111VE141M1X7W12w21UPe16rE191s18l31mA52V"
"AGW8Z4M-14W12Y8m1L26y+p11uP113a51G3z1111Z4164Xj32Whu12"}, {"[:digit:] decimalnumber digit nd", -1, 
"m1Acn1Ac4Ac6AyCAs3As3As3As3As3As3As3As3As3AW3As3Ac2As8Ac2Acw1Ac1Ai9AW4Ac5A6As5As2Ac4A6AckY1AcLAc1Ac6"
"AMAs2AsCAsuKAci1Aca2A6AyOAW4Ay1Am4As8AsAAs3AsBAc3A6Ki2AcDAc3AsKAs2As7Ac2AcDAskGAcf2As2Ac4AsGAsxNAqs2"
"o1Wg2AcDAsFAt7ArQAsq4A"}, {"no othernumber", 115, 
"o525123rf26uB6u33b47v67H9nDArX1KpZ1AWF1rq11366Ac6Gf11oOk2iKUfh11qa14g4AU81FW1Ad1FmhT6ncMj1X24H2rARa1"
"4qf18P7d19h25M6W522G2k1W29q12U3h25e38O8f17gA6WBV+4Ag14m37c4KxBKbg12kD9dRJpQLcyI7+ONfXPKCKi3Pkg59XTx1"
"1314i2j11FYUD"}, {"lm modifierletter", 540, 
"g51F1+F76CQ111s21k11aF1c71a52j8241V19131W51d51qc11-31me21h31ZJ1mE6od1GmQQba21-51rE1h1551X32z23suR1Yd"
"16k81o31t49e31cI1M1f41i31L2xZL1j12X-12hk11W11mkN4yF3e12cHDW2211iWG41712ufC7jT1-Y11"}, {"closepunctuation pe", -1, 
"f11p11V1zr3111+w11fj21t11F1wJ111U1+X11111111111111m21W1111111111qC111111111111111111111W2111X11bX111"
"11111i11111111iD1111111113111111122+ep11v61T11111111111111131H11111g51p11V12121"},
{"extendedpictographic extpict", 257, 
"f5141jy71C1u61M1w26F2lB2C1-21c21PB43d61d72A191w14161C1o3As32B1111613161A2F12141114311B5j1391E1E1qB2l"
"E3J2p1141wc11C1vI111chl3W8D3V1y16C2E12AIv1RFA1K129149oD5+98wDq3Cr2h1C4u18A6e18Uo2Cl11A1vDW8+V"},
{"openpunctuation ps", 558, 
"e12n1111T111yr34zw12zh2131c12s12E2vJ4T2zX1El22VApCM-14W12aX18O1I8hDA2813+ep12t62SG22G6f52n1111T11112" "12"},
{"emojipresentation epres", 257, 
"wu82j643121fG2L2o1Ch11J1D182H2528151L1721141217142S1Z11114311z13O1E1xQ2p1141kbn31g61+512Ah2Q11O1K125"
"13L2k5X1C91c21MCh145CH313d2111x52-1D41OI1Q2D1s2h661332344B279Z7C41x8l11A1v5m3D3A5u17F2B69"},
{"sentenceterminal sterm", -1, 
"X11C1G1fg11p43q51h13s71z111132b92at12sO142bO1c62z42j1151w92YB4Y52A222T3x52X22aT1N293lb33o91D1M2jD1yd"
"T1k82Z7131+B2s22-21u42p43m42v71cnK122x1132f51C1G1X21qt22zd15i14z52r34-33X4261G2u2212i31g92r32rB25Ff3"
"2v73bG111x72t22aD2qL2g22fvI2b41X22B1fH2e91cmJ1el71"}, {"term terminalpunctuation", 562, 
"i11D2YQ181xH1e21E1d7811h71t162113X11xl12i5146kY1114aS3e7131d111221qQ1-63Xm41A112nD1ydT1k81c73mM1t81m"
"xK222s51D2e21wX11m11ca11d61mE6a26v24ib15iF1oG1C2eB2xc12WD1j11+-15asH1zQ1l-Q112"}, {"changeswhencasemapped cwcm", 509, 
"X2Q6Qw11AN1V1W21q21S2E22114z21I6R1211123214152112217121123651A2c51g142233116113111K1l13X1151b48c51c1"
"Ad1qx21ZLs226Ya2Bk7131G1n3y4211s3262c126281111111V2r11711331734264D5317f913261R1HW132nPq1su1n312127c"
"37432igUk1ISc4E2+19F33251P1U2247O2yQ1Sm2WwJ7C5fW1Q6Qbb1m2W3a14a1q3B1F17121B1F1712Zs1p1Dp1z2MAMwu2W2W" "hLW2WqUa2"},
{"omath othermath", 517, 
"+21nR321Q222WX71R3B1W14O2E2X2D413245I1412A113561322213163455h25241212111522424I2211171162S141M1f74e5"
"211O1H1zD2C955522235E11126O2v1111T492sA2VApCM-14W12ZZr111141p6111Xcr1r21d2122122241C11171X21428171S1"
"41511371qA2a92o1Wm541R1211211A141111614111111312112111111111121124171414111A1H53151H"}, {"math", 565, 
"h11G3z1111j1141b11V1+N1lG3xn61D1d13D3h41d1561a255241212171V22111Vi8W12w21UPe16rE191s18l31mA52VAGW8Z4"
"M-14W12Y8m1L26y+p11uP113a51G3z1111Z4164Xj32nfo11P1V1P1V1P1V1P1V1P1iv52"}, {"n number", 555, 
"o525123rf26uB6u33b47v67H9nDArX1KnR3-7AWF1rq11366Ac6p125sMy1k2MsJUfh11fO1P9E3tA4g4AU81FW1Ad1FcXTAWA6n"
"cMj1Cv1H2rARa14T181c45Ya18P7d19h25M6W522G2k1W29q12U3h25e38O8f17gA6WBV+4Ag14m37c4KxBKbg12kD9dRJpQLhX1"
"l3itH7+ONfXPKCKi3Pkg59XTx11314i2j11FYUD"}, {"casedletter lc", 564, 
"u91q21S2E131Y31I6R12111232141521122171211236511182Hr41i43d11ZB1d11tx5i1-1D231G1CX8211YJ1412A11356131"
"321312412455MW1sPq1dy112125e31hoU2-18L161P1Z1111a11rPZ11759tag2r21d2122122241C11171X21428171S1415113"
"71qA2P1P1V1P1V1P1V1P1V1P18qv1A1K66"}, {"emoji", 559, 
"Z11615Akw81yJ11712113214121122131328351115CB2211211I1226A26111232512242B25221521112K25614214129112p2"
"3uao341g61m1D3V1y14z1p23Di14972k5Y12m322132p223145+71d2361O7228C1242142D221829153C38321114161316i658"
"234A3112312A3q3Cr2BC41FC4u18A6e18Uo2W8m3D3A5u17F2B697W8+V"}, {"cased", 568, 
"g51F1rF972U5W31q11Xi31lX3-1D1Y1b1nL1D1GDZ6W1sPq1oy12+mU2o61X4332YR491sWN1231g119rZs1+1Yc4Q6Q6Q"},
{"common zyyy", 346, 
"0X2Q6Ql11F15N1V1XEd1552Kq31916111zJ161E131W11y41aG1X42vc11rC4Y91ll13d22h6211jc11D174161321bOC2t21B3B"
"1FHX1-1c113261R1Hf134wKMBLWTW8qJ2W11f3WG+2oCL111PF844x2231w22p4GW1c191m1W2Vn2l11u2e5WuSY1c33b5Aq71W5"
"1hC1E2okK2m6AMZ11J14p411W1Q6QBA1j12W2717A5Y834j139m2Dp1j1a7Rajk14yw3w76qDy4q3y1s7Ad12+13H827U4z1r6KC"
"KCt29Pd4r21d2122122241C11171X21428171S141511371qA2a92o1nZ5a2i2z1YMi14a3CF2F1F1b1Ak5u1Q12Di14972E6w4u"
"U4H3D3t34-26C41FC4u18A6e18U2C42+1qACE2D3A5u17F2B697p41c3dWXO1UW3"}, {"othersymbol so", 455, 
"c51214111nU1g82-32k61A1J2t71ZG1rB1Y4611a41l61f11dC3F11326K11111b48161254b62mNApM1oM1z4Y1XBA99Zi12141"
"2A1126611111141B2E11211w1295241212171V22111Vi884K272n21UPe16e2MBn2k2Mt5191s18l31u7i1i1W2W8WGm1L26d12"
"W11f3b76bB2+CG41D2C1L262mA24AW1c191GVBU81FW1Ad1FWAWk6W2mqLt1XR4A211zH3csKG-31j13aF13142D2v99v1H231D3"
"1l1j1wp12lI1sZ31ra284HgwI451sgK1Zx3m7GqDy4q3y1s7Ad12y153M27U4z1LY231w5t2fb1WGt14o181E12es11yw21X41nM"
"i14a3CF2F1F1b1NX5u1TDi14972E6w4x75uM4H3D3t34-26C41FC4u18A6e18U2C42+1qACE2D3A5u17F2B697p41y2"},
{"mc spacingmark", 550, 
"Ze21t11238412o12x126222s11w13Y21w138112r12y116222o31123313q13z14z12w112112k11E2x125313r12i2267J2gA2-"
"11h52416122P2A327L22621A3vu117812wA4234216W72w1111911286n41v14W21U142-112311r1882h51L1qO1sWY1221u22o"
"1Gk41m11m124222l3222O1j1111j312251j72121211nzK2WZ4111-31j1342p31O2x11m1391E1z2332i53V2x11142222L2r22"
"F112d338231h3261121121k726421n338211j3112k311241b8391u75127111k438441q21T2+11tC1E1g317121r654211+A2C"
"1m1282glG3an3t1uaaPW3"}, {"otherpunctuation po", 563, 
"Y12132141G1R1a2151E271wa16W3151i12K221y24z4111f71+11v91i41u31v31cC1C1lB1w21q541471m31g2542n34h51aJ1t"
"Z12c125121pG2W4752k5131x44W68B1YQ284138921212368111Aza3112m31l42432129121122A42A33391141mD1v11z51thT"
"1A1p31XC2Y4311n11m11X3634G2y31X41nvK21241M1K224I36112s42132141G1R1e11wC3iZ11lU1m8621c11s31Y21Xi12Z41"
"p12n22I111-21vC2r32D1e31w7143w31SDi21XC1f81y41y2323p2133-2At61Y32g11qMBl51n-32dwE2nH1h92dA1erQ1px21+" "Q2"},
{"p punct punctuation", 574, 
"e1231j111111R111j11F1kc11p11xh24Yc11wK2fB1fW2628P24242D1e12E2vJ4T2zX1El22VApCM-14W12aW1432129121122A"
"G24111I9gDA2CG1l31zap12t62OK22438741a5231j111111R1111212gm31+91"}, {"dia diacritic", 552, 
"+2111d21614122tF-41856H24192z75n61t1H1R111211c4842c424233Z2Rx2Bw1BY12+38f1AGSz11K4S1g21-31-31W23y11O"
"1c71-31gC611v35h22R1111142Y2222+11m31h1245P711A2XM3fZ191191xA3v9821m1F2Be31s19o31l22W26o2P416123o1-1"
"v2Cb1BzD113B3D3D3D2md33j41l51wF6f34-21ohT1C211S2o22EY1c33j32c7Iv14a41n11r43X24u4593W41nvJ1XOGk8111l1"
"1j12Z21yN1-a161g119zJ3g52xH6c11Q5lC3c2Bn14v71w11u51s23f31o51n22f1735z22D2Z31y31y71s71YC1e81+V1tG1id5"
"FwqD5x17qH2YHHm22+-F41712Xu7k12NWH3368827U4Yq3+1Y67tB1z14+N2WN7j3313"}, {"s symbol", 572, 
"a1161G3V111R111Z14213121112131U1V1gE4CE57111Hr31E2m31uC1s3321oF2e41fB271r71d81bI1xi21X-1113B3D3D3D2b"
"21D1d13D3JX1t21d1561a255241212171V22111Vi8W12w21UPe16rE191s18l31mA52VAGW8Z4M-14W12Y8m1L26kg12ZpTN92d"
"32j51YP1E2zzJ1e4HvH1b311321w4161G3V111R111X441224Xj32jo44Wtj11P1V1P1V1P1V1P1V1P1xv21mj21-H2fe15"},
{"oalpha otheralphabetic", 480, 
"bQ1TDWIE11121211e2Bm1D17G1b37442241Z11UGc3Bb32391314g31y1C376Ks122F1253A2T3w172222A1A2T3w15422241U23"
"1B3w181312L2M343w17222292A2U1x153313A1e15v17131382B2T3w17131382B2F1C4w171313A1A2T3h261118I2z1127I1Z3"
"12612G1Z5J9B1a1k3C1124N443132734DC11A4qp12U2U2U2Y2Jy52Y11s3C49+65v1A2Kg22B3n15m1Fy13U922v1Bo1JyCY1hR"
"GWRQsd2W1qZU8Y12YB181N5u22o1G11v11c15SCj14m1Cb11Z2EC182j13o11132251i1551j78pvJ1tY25cq131254qO4X21XA2"
"l21Z83r1Ej12B3j1991z13a1CI2v13m1DE2y29216121z4AN4w172222A1A2q2911211412d3D13g3Ij7727T2o2F11g3Bd3EX8D"
"t7612223111k472641SAg1514IBk1EtC817p2M1Ew363112131131Y251214yA49211m1733zkGHWn311t174z22ibJ1Xx871H27" "1215a31tb21"},
{"=noscript", 515, 
"W11-f11d11c31j11-E3W3B5V1259L18Me93t31Z46r21k51t11W11P1C1u21L1C131s12a21a8121211641717221D1J1+X21719"
"1l71e31cIGz3112j13f825h123t1121x75aM2+P1d13jx11Y13C18Q4Gl11l11bFP+C4k92h45a1291l81sr6AsmKg1lz118M221"
"118L5r11n62cJ6sYK1zBG-31k12yS1mC3WIB1F17121B1F17123q1iC61g119vJ2I1tLe18A6c13T82m7g11322G3t1i18g1MQc1"
"SKNv36i21A1s34c42l33v71+8134sI2MKs11b17v5y1a672128121U122C9Ac282k12BRe28p2DGW2As5Y1EAc87121i13112198"
"A66121b112167As9P7H1f13Tr21Fo1D1my3Z3yX1d1Axy3be7w1sf2l21AsJw1c6x2g5641l19v24B2x-5BxNZFf1Adt8417123X"
"9F1T321E48iCae6w76qDi2k12N9q3bH2r6KCK+37dy2V66b8+1X11m3j13E2A42WAVHw151mEg1s6h141WF714121FiA1bPa2i2z"
"1lU3V1y14z11o56jZ1544N6t3345r256C41-5C42+1GF18812C1C4FX1Ik11p4CE2D3A5u17F2B697p41c3zsg19rY45sx5nf7Fk" "JYj4hw45WZ4"},
{"incb", 542,  "WOm3r82aEBQ1yM134u31-71-31-71-7191A2T1e2141231181n2127C8Y3129B7f22R11111t1E15125B1a191c34161222P243G"
"4D12261F1-L3oT4S3T2U2W2217812B91j1311r32Y11s33429163x6221w11171111286A21W44m1A43c19C2W1426u11123115u"
"1822qU1Yd33j41W3W1kH2-nT41AW12m22m813141P251t42QID1c18PB11i13m11242221a11Z262222C181l11p1113225211g1"
"281k712141mvJ1lO2kB2sU5cq131254e1341b52zH4X25z92l24c2Bn14x31s1Ff1122A3n142271z13a1518+11C2q19118421-"
"23246121z4138L2w111111C191E735Z21261121134311E2r282311N1n212611211212h71246212R2r282112g311128b31112"
"415Z8912r71A441m442241W1Ae1624819623k1D12sC71611o2M271212w3631121711e223111xA2B2q1553N1bd516FecBC33W"
"k25x17uW11-14n21B2hbJ2cc5266l63xz1t14o181E1M51Fmg171H271215a31W57tB1z14yF4+72WN7j37mr25WXZOW3"},
{"combiningmark m mark", 578, 
"WOb21TW97d8Ve51c4293p2BW5991Q2J1h13y18g1AC286i21G134d31G1m11z11G1k31G1l13y11G171t31k31G1k31G1j32G1y3"
"1y3611h31D511f22R1111142a2112+11m3112YP3qT2U1-32JB91j1311f93a91K821m1F2Be31F1c19s12w11B2Z21u431L4161"
"23c6JY1BmMX1bUq1bW23j41gL6f32qkT492o32q81b11t41RIv13b11-21C1+7111q11r72omKGGGjU1Y71tw1341b52ZK4lC3c2"
"Bn14W61f11E1v12u32+11i2184e32o52m22G1O735v2311E2-2131N1Z32x72+31s32p31j82Y8241y41o22I1m22bD1Y8112n21"
"fD2N1bd516FvcB1Wk25x17jb11ubJ1Yp4k12N+G5368827U4q43xz1t14o181E1M51FWq17tB1z14yF4+72WN7j3313b-1Q6Q6Qs" "xZOm7"},
{"[:punct:] posixpunct", 577, 
"X131614A232Q311R111Z115131A23131+L181oE6f12p11112121i12K212D113g24c31h1Ef73s1FV1b82A1i41u31v31cC1C1l"
"B1w21A2e5F11b14d21g2542l36h51aJ9t41jJ1i12k23d22z4313b1Bv92u62W4716W52A7S3y34x15+12W28B1yPO8K1D1CU2E2"
"vJ4T2zX1El22VApCM-14W12xN412m31l4l11W12CZD34A2CG1C1Y31w21YWT2j83Z31A1p36yB4s22e1311n12l11X3DG2y34+32"
"G2v71ogK2m6AMZ11E114112r431614A232Q311R11117wC3yK1m11+C1dN1d61V1m89c11m37Y27v24nE1+91d55i14z57j3214+"
"34m12l2441D113u26h31g9212o35A211e31w7Nf33SDi21Y43y71e83x41y28p2315z2At61-25g12bK2g2Dl51mZ15yx22xpE2b"
"41X2581eH3d94dA1ybJ1dl75px21+Q2"}, {"mn nonspacingmark", 580, 
"WOm3p85f8j111121211e2Bm1LG1b37262214Z11URx2Bw1991O4191315h13x19g1O1W1t11114887A2T1w1144T2Q122v114242"
"2331U231B2v114512P2M611w112114G2B2U1z11C1o1131t1113531382B2T1w11216152K2S2v1244I1t31F1rf21U1fS1s3151"
"1152b31d22vW11l6413fw32WoT3WN1i31zkL2Wn41q31e81E191W3191211351W71C1n71c81vJ1C1Zm11kbK2phO266eq85WXZO" "W3"},
{"graphemeextend grext", 583, 
"ea12qf11O1cB1O1c31O1e7111421292d31O1t31F1rf21U1fS1s31511152b31d22uW11m6413fw32WoT3WN1i31zkL2Wn41q31e"
"81E191W3191211351W71C1n71c81vJ1C1Zm11kbK2phO266jrhOW3"}, {"caseignorable ci", 583, 
"d1161B1Z1111d2141114122tFm2q32419211W82l6151q41B6M1Z11y4172e11a7241V19131-2172t11O1k41qc11-31rH1ws11"
"s11q11ZJ1M1vD6k5-1D1Y1b1zF113B3D3D3D2C582A12125n151A11D1GDW2413ty22n71-51rE1h1551-24z23suR1Yd16k81Z3"
"3C1S2Y3Y1k21N3d3332rE1M1f41i31L2c3593cYKHmI1+1121f517161B1Z1111l11j12Z21L3ay161g119pi11W11jQ1F1Yx8GW"
"uD4yF3e12cHDW2211iWG41712Xb34lc58rr3+1f67jT1-Y11lr25XWZO1UW3"}, {"lo otherletter", 545, 
"g51F1W8144m61xPR44j1W11AZ121Z311O2A321G11UTv2B1OX1LMg1P7B5O16Hf1x1s131I17AGF48222M17113431G1D213E2A1"
"86422M17121212V411J3G9131M17121531I1F2N1B8222M17121531U213F1H116331432111232333CM1q18131N1G31Q32122U"
"148131N1A1531V212F2H9131f121G15383O65I3O191127w1m112C6x1211151O111A129125N4W11-181a1R5p3h1K1G6443132"
"734DC1n3W8zAW1JAd3iJ2H1Q5h2687IDJEIED13Fq1e11Z2Z11r1752Y1115c2AVn1U25Bi14Qs1N9r1m5l1H8s1UD2Ai1Qa1f13"
"AUn34161231wX14t-2u1+K1r114s2811w2415h11+2HW1m1GWGWk6W2rmK1tZ1Z2e18i84GA2Y21n1c2f51d313713141NTq1Eo1"
"+163112BSANPT7l1j1529A51f1N318KG16313o11132252111O23B71j6Z1TazACN4n1ae8kB2g3Z211A1D151112121i3X1hBIW"
"22s1e1Cq351d4f3A1j12V36262623Z1C1Q1J121F2EY1x3bCT3n1l1W1DK186c1AU2a148W4k2Y3e18q1y2q1Ct99MA8u46211i1"
"12312NAN9VX2J12AMAQc2u162W21F4131Tg1T3TZ181SRs1AMAJDIk3f2t5a1c1411m9g162G3x1TA18Mg1Ik1LRNCr1v1221Dj1"
"W1PQa1T1218Z131Cm1E4L111Z1I1PJ2-1711141F1A7l1c18222M17121531I1C5UA11211c111P111i1r1I4K3Um1K211u5l1f1"
"4a1m1K1x1h1D1d2Rb17v5i1p682128121OF111+282d1G111S1Ae171L1Bk1J1If2d6X1V91b1H1n1Um37121c1L1P6121W1E1dA"
"JF11D1Y1y31l2wSc7a6io2X3FmX1H6Pxy35dIvr6UYt1vH7VHl2HUIm1p1L5JpDe1rCh251l5u-58sc1f1Att8Z9F1T321E48iCa"
"e2h35D397Amp81rFj1X11XAUIi1aFRb7U21lGb6xf141R1211211A141111614111111312112111111111121124171414111A1"
"H53151Hag4Wtf1W1wX46+62Yq5Enf7FkJYj2+GYl1hw45WZ4"}, {"changeswhenlowercased cwl", 511, 
"X2Qb3N17X1111111111111111111111111111111111111111111111111111111121111111111111112111111111111111111"
"1111111111111111111111111111211113211121324121332121111121121121311123171212121111111111111112111111"
"1111111111121211311111111111111111111111111111111111111111111111111111111117212211411111111X91113181"
"611311121H19Z118111111111111111111111115121122p1m111111111111111111111111111111111191111111111111111"
"1111111111111111111111111111111111111121111111111112111111111111111111111111111111111111111111111111"
"111111111111111111111111111111111111111111111112c1fw2c11151oMs2pa216h123WA11111111111111111111111111"
"1111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111111"
"1111111111111111111111191111111111111111111111111111111111111111111111111111111111111111111111111111"
"1111111111111111111119886A88886B111111188e24C4C4C5B4g913261j1GJ1oPQmv1m1m111321111114112183111111111"
"11111111111111111111111111111111111111111111111111111111111111111111111111111111111111111811141jgU11"
"1111111111111111111111111111111111111111111J111111111111111111111111111d4111111111111131111111111111"
"111111111111111111111111111111111111111111111111A111121111111141112111311111111111111111111515111111"
"111111111411123151111111O1hvLQbc1e1e4a1y4B1F1712gt1p1z4Mwv2W1WiLW1WrUY1"}, {"changeswhencasefolded cwcf", 587, 
"r51f11f31r11bE1y31D232P231nC1um3s226Ya29nG2a788888A321A321g1321uxY1m2WwJ7C5"}, {"changeswhentitlecased cwt", 588, 
"X2Q6Qb2N171N1W21G1r11D1S2E221152121c11l11I6R1211123214152112217121123651A2n642233116113111K1V1D7P232"
"51b48c51c1Ac1vu2c11151xz225h123v5131G1n3w4411s3262c126281111111VA8888A411511711534264D9115f913261R1H"
"W132nPq1su1n312127c37432Cc11151oeUk1ISc4E2+19F33251P1U2247O2yQ1j+KQ6Qbb1m2W3a14a1q3B1F17121B1F1712Zs"
"1p1Dp1z2MAMwu2W2WhLW2WqUa2"}, {"changeswhenuppercased cwu", 589,  "aE21212b12zs3h123eq388888C1F1l11"},
{"lu uppercaseletter", 587, 
"bE12121c11-E3pz688888C1F1l11b8141332321356131322211A251QGcQQmvh3QQQQQQ11221222418QQQ2142817R21415113"
"7RQQQQQQQQQQQUPX1PX1PX1PX1PX11"}, {"[:upper:] upper uppercase", 591,  "Wh8GcQQWZp3Q6Q6Q"},
{"ll lowercaseletter", 589, 
"u91q21S2E131512121c11l11I6R12111232141521122171211236511182Hr41s51ZB1d11dw2h123WW3i1-1D231G1CX8211gJ"
"13231R141412284c1GmQQdy112125e31hoU2-18L161P1Z1111a11rPZ11759nbg2QQ71IQQQ411171BQQQQQQQQQQQQQQQQQSSP"
"16QP16QP16QP16QP1611qv1A1K66"}, {"[:lower:] lower lowercase", 593, 
"g51F1rF972U5W31q11Xi31lX3-1D1Y1b1nL1D1GDp6GmQQoy12+mU2o61X4332YR491sWN1231g119rZs1+1"}, {"ids idstart", 586, 
"X2Q6Qw11AN1V1Z6144m61j14CE57111X451224116113111K1p21h48c51c1216f1t51a52j8241V19131W51d51qc11-31vEc11"
"1512h114WLs226mN3c71h31X22WH1mE62B5h123W2W6W2s8262c126281111111V2r11711331734264D5317q31D1GDb31412A1"
"1266111111B41245541Hf1tp2b76432Cc11151X21rK111P97524-24z23suR1Yd16k81p1k1HVe2Ad192d3241+1221118L513q"
"E1M1f41i31L2x1h11E6m2WwJ7C5fW1Q6QL1j12WDr1iE181c45g1m2W3a14a1q3B1F17121B1F1712ZE61g119bc1p1Dp1x211M9"
"Nwu2W2Wv2l3nsH4yF3e12p6W2p8DW2211iWG41712XW9r21d2122122241C11171X21428171S141511371qA2P1P1V1P1V1P1V1"
"P1V1P18qv1A1K66b8+1f67jT1qW1a271"}, {"l letter", 595,  "kt53qC2na21L1n1Z124cb31tE1P9E3W32foTAmoMr1iE181c45gX8l3"},
{"xids xidstart", 595,  "wR1ur21-31dl82X+o16sC2q3111111111111111-82"}, {"unknown zzzz", 595, 
"X2Q6Ql11A1415N1V1gE4CE57111X451815211k31h48m66f12231t1h12BW1h1Z121Z311F272A321E1111URx2BFAX192433M41"
"913152FQ321f117259g1w1s131I17AFG3u1117222391A22A2A1223u1115422331KC32A3u11181313K22C8613u1117222373A"
"22B16A1x15331491EL55t1117131472B22A7914t1117131472B22A31C4t121713141178322K73c214611186A23y1127417Lr"
"2129B71Ad1-1n1N5B1a11F1Dm2K1G6443132734DC1Hx21XJW1JAc31iJ2H1Q2k23a14S5R2U2W2Z114112A6A6Ql41s3C4C413C"
"W4B3Y1N522r1A1T2B6A67162Vn15l1H9r1UD2Ai1E84a1K3F6Aa12W288P416123c6W2zD113B3D3D3D21b31B3B1FHX1FX1F214"
"12A11266111111G245541Hf134wKMBLqu12W11f3b764377m31E1W3+3Y1Q1v2Cs6QL3P975253v2251w21q4GW1c191GV1WFWk6"
"W2mqLt1t12j83GAb2GV2m288N92d32t313141NA3Aw1482o1I8C6I63112BSANDB1W14l1R2A4251AAl1EC1822A24N313o11132"
"25211S2B732a31E2t3B2AavJ1A1e4HxBI-31i1U6p11J14p411W1Q6QBw3717A5Y834j139r1Q1D31l1k1Y7Sa14o25a11m11l6A"
"b61dN9N9d19h25M631V1y322G2k1131254e134A79a13T3e11S24CY27O8O8P4C7gA6a148A6AV6V2m6Vi13k24TAVKe18x17q13"
"r1M4V22A4j1JA1Y1A63a1E1E12i13A3m1E4L11131Kt1J21d31r1C5A64t1217222391A22735Z291121141511121282o2I4H12"
"n2K219Ar672W142o2KCA6D+1D116A6Kv1F4Gi7Ga5Jz16122411159At37271111SAe171D9Bk1J15z2At61EAr181815AT32W1M"
"1Ew36311217118Am1512158AfA67211m173Tb3o1D1mZ15yx22zX1H6FecBScf2A42m2Ac16w1G42AA17hGDc8Rq511t174l2111"
"B2gbJ8yw3w76qDi2k12N9q3y1s7Ad12Y6Lc2w3KCKCt29PeQ1P1V1P1V1P1V1P1V1P1A+LF51Fmg171H271215a31W579A51+A1z"
"1E51iFEq721A41dMGj375A42nOa2i2z1oD2k8i14a3CF2F1F1b1Ak5u1TDi14972E6w4uU4H3D3t34-26C41FC4u18A6e18U2C42"
"+1qACE2D3A5u17F2B697p41c3dWXO1UW3W4m7mm-5"}, {"assigned", 598,  "0WWu1We6WuXS+--12+--12"}, {"cn unassigned", 599, 
"0WWWY1"}, {"[:print:] print", 599,  "0W1-2X1ey72"}, {"c other", 598, 
"0W1-2X1D1og16M1W61n11WC2m21hv31y-15Q5n151Alqt11v73Xc41F1Yx8GWZY14lc58cqhO1UW3"}, {"[:graph:] graph", 601, 
"W11-31-k51-h2Ba11l11Wz31"}, {"[:alpha:] alpha alphabetic", 595, 
"bQ1TDWIE11121211e2Bm1D17G1b37442241Z11UGc3Bb32391314g31y1C376Ks122F1253A2T3w172222A1A2T3w15422241U23"
"1B3w181312L2M343w17222292A2U1x153313A1e15v17131382B2T3w17131382B2F1C4w171313A1A2T3h261118I2z1127I1Z3"
"12612G1Z5J9B1a1k3C1124N443132734DC11A4qp12U2U2U2Y2JW71s3C49+65v1A2Kg22B3n15m1Fy13U922v1Bo1JyCY1ZP1L1"
"dSq1sd2W1l11hJ2tkT8Y12YB181N5u22o1G11v11c15SCj14m1Cb11Z2EC182j13o11132251i1551j78pvJ1tY25cq131254qO4"
"X21XA2l21Z83r1Ej12B3j1991z13a1CI2v13m1DE2y29216121z4AN4w172222A1A2q2911211412d3D13g3Ij7727T2o2F11g3B"
"d3EX8Dt7612223111k472641SAg1514IBk1EtC817p2M1Ew363112131131Y251214yA49211m1733zkGHWn311t174z22ibJ1Xx"
"871H271215a31tb21e-1Q6Q6Q"}, {"idc idcontinue", 604, 
"m1Ab11t21eIb21Ta11x75f8Ve517Ar32933Ac2Br3AX1991Q2J1h13y18g1AC286i21G134HAi21G1OAE1z11G1OAi21G1OAD3y1"
"1G171GAz21OAi21G1OAi21G1OAh22G1OAw21RAt26111AW31D5111A+126AB1111142a2112+11m31125Ac2AZM399YT2U1-32JB"
"912AX131B-83AAW4Bb41K82B6AME3Be31F1BAH9s124Ai11B2Z218A6As331L416123c6JY1BiG2n12J1x3D413Cd11L1dSq1bW2"
"3j41l51wF6f34+21afTAb21C2o32q81b11t41BA6IEAX13b11-21C1FAMAs2Ab3111q11r722AcmKGGG32O3W6Ab11b11tK1Y71-"
"DAki1341b52fIA6AW14lC3c2Bn14W61VBE1v12r1Av121Ap11i21843Ax22o525AX22G1O735v2311E2-21319A41Z32CAb72+31"
"GAy228A6Kd214A-72b5Ap2241CAc41o22I1m22sAAb21GAe7112AAz118AtC2DBbd516FvcBBcf2As2Ac15x17PAsGAgJ1ubJ1oY"
"4AcGk12N+G5368827U4q43fi1o1WGt14o181E1M51FWq179AaB1z1EoFEq721ArM7j33135As+1Q6Q6Qcp2AceXOm7"}, {"[:word:]", 605, 
"t51lM1W82-s39ep11Z71jg12l6413p11L1dSq1bg21hJ2+21qhT3odM1gky1Q6Q6Q"}, {"word", 606,  "o525123"},
{"xidc xidcontinue", 605,  "wR1WfB2X+o16sC2q3111111111111111"}, {"[:alnum:] alnum", 604, 
"m1Acn1Ac4Ac6AyCAs3As3As3As3As3As3As3As3As3AW3As3Ac2As8Ac2Acw1Ac1Ai9AW4Ac5A6As5As2Ac4A6AckY1AcLAc1Ac6"
"AMAs2AsCAsuKAci1Aca2A6AyOAW4Ay1Am4As8AsAAs3AsBAc3A6Ki2AcDAc3AsKAs2As7Ac2AcDAskGAcf2As2Ac4AsGAsxNAqs2"
"o1Wg2AcDAsFAt7ArQAsq4A"}, {"graphemebase grbase", 602, 
"0WOm3p87d8j111121211e2Bm1LG1b37262214Z11URx2Bw1991O4191315h13x19g1O1W1t1111484137A2T1w1111248191A2Q1"
"22v1142422331U231B2v11451241K2M611w1112148173A2U1x1111C191e1131t1113531472B2T1w112211331472B2S2v1211"
"248191A2T1e2141231181n2127C8Y3129B7f22R11111t1E15125B1a191c34161222P243G4D12261F1-L3oT4S3T2U2W221781"
"2B91j1311r32Y11s33429163x6221w11171111286A21m1Vn14m1A43c19C2W1426u11123115u1822u431D17416132c6W2eH2c"
"5X1+-23j41W3W1gH6f32qkT41AW12m22m813141P251t42QID1c18PB11i13m11242221a11Z262222C181l11p1113225211g12"
"81k712141mvJ1XNGGGkB2zI1Y71r45cq131254e1341b52zH4X25z92l24c2Bn14x31s1Ff1122A3n142271z13a1518+11C2q19"
"118421-23246121z4138L2v121111C191E735Z21261121134311E2r282311N1n212611211212h71246212R2r282112g31112"
"8b31112415Z8912r71A441m442241W1Ae1624819623k1D12sC71611o2M271212w3631121711e223111xA2B2q1553N1bd516F"
"ecBC33Wk25x17uW11-14n21B2hbJ2Xp4k12N+G5368827U4q43xz1t14o181E1M51Fmg171H271215a31W57tB1z14yF4+72WN7j" "37rzbOm7mm-5"},
};
// clang-format on
const std::size_t kPropertyCount = 611;

}  // namespace sluice::text
